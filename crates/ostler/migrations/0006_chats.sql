-- What chats keep: who was let in, which messages show an answer, where a
-- connection stood.

-- People who were let in, or may be.
CREATE TABLE pairings (
    channel TEXT NOT NULL,
    -- Who it is, by the name that the channel vouches for.
    sender TEXT NOT NULL,
    -- What he is called there, for the operator.
    name TEXT NOT NULL,
    -- What the operator has to say; nothing once it is decided.
    code TEXT,
    state TEXT NOT NULL CHECK (state IN ('asked', 'approved', 'rejected')),
    asked_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    decided_at BIGINT,
    PRIMARY KEY (channel, sender),
    CHECK ((state = 'asked') = (code IS NOT NULL))
);
CREATE UNIQUE INDEX pairings_by_code ON pairings (channel, code) WHERE code IS NOT NULL;

-- The messages that show an answer in a chat, in the order in which they stand there.
CREATE TABLE posts (
    -- The job that is answered, or the turn if no job asked for it.
    subject TEXT NOT NULL,
    number BIGINT NOT NULL,
    -- Which part of the answer it is.
    slot TEXT NOT NULL,
    channel TEXT NOT NULL,
    place TEXT NOT NULL,
    -- What the chat calls the message.
    message TEXT NOT NULL,
    posted_at BIGINT NOT NULL,
    PRIMARY KEY (subject, slot)
);
CREATE INDEX posts_by_age ON posts (posted_at);
CREATE INDEX posts_by_slot ON posts (slot);

INSERT INTO duties (name, lease_until) VALUES ('discord', 0);
