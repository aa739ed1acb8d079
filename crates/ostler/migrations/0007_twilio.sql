-- WhatsApp and SMS: what became of messages, when somebody wrote last, and what was
-- said in groups.

-- A message of no name is on its way: whether it left is not known yet.
CREATE INDEX posts_by_message ON posts (message);
CREATE INDEX posts_by_place ON posts (channel, place, posted_at);
-- What the chat says became of it, and why it did not arrive.
ALTER TABLE posts ADD COLUMN delivery TEXT;
ALTER TABLE posts ADD COLUMN trouble TEXT;

-- When somebody wrote last: WhatsApp lets him be answered for a day.
CREATE TABLE contacts (
    channel TEXT NOT NULL,
    place TEXT NOT NULL,
    heard_at BIGINT NOT NULL,
    -- When he was last told, by a template, that something waits for him.
    called_at BIGINT,
    PRIMARY KEY (channel, place)
);

-- What was said in a group without a word to the agent, until it is told.
CREATE TABLE overheard (
    channel TEXT NOT NULL,
    place TEXT NOT NULL,
    message TEXT NOT NULL,
    -- In which order it was said.
    number BIGINT NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    heard_at BIGINT NOT NULL,
    PRIMARY KEY (channel, message)
);
CREATE INDEX overheard_by_place ON overheard (channel, place, number);
CREATE INDEX overheard_by_age ON overheard (heard_at);

INSERT INTO duties (name, lease_until) VALUES ('twilio', 0);
