-- What people said and what was said to them, for the history and the archive.

CREATE TABLE messages (
    id TEXT NOT NULL PRIMARY KEY,
    conversation TEXT NOT NULL REFERENCES conversations (id),
    -- The order within the conversation; of two with the same, the id decides.
    number BIGINT NOT NULL,
    direction TEXT NOT NULL CHECK (direction IN ('in', 'out')),
    -- What made it, in a word.
    origin TEXT NOT NULL,
    -- The place that it came from or goes to. A conversation may have several.
    channel TEXT NOT NULL,
    address TEXT NOT NULL,
    sender TEXT,
    agent TEXT,
    text TEXT,
    error TEXT,
    job TEXT,
    turn TEXT,
    at BIGINT NOT NULL,
    -- What makes it the same message, where somebody says so.
    dedupe TEXT,
    archived BIGINT NOT NULL,
    CHECK ((text IS NULL) <> (error IS NULL))
);
CREATE INDEX messages_by_conversation ON messages (conversation, number, id);
CREATE INDEX messages_of_conversation_by_time ON messages (conversation, at);
CREATE INDEX messages_by_time ON messages (at);
CREATE INDEX messages_to_archive ON messages (id) WHERE archived = 0;
CREATE INDEX messages_of_people ON messages (id) WHERE origin = 'person';
CREATE UNIQUE INDEX messages_once ON messages (dedupe) WHERE dedupe IS NOT NULL;

-- What one gateway at a time does, and which.
CREATE TABLE duties (
    name TEXT NOT NULL PRIMARY KEY,
    owner TEXT,
    lease_until BIGINT NOT NULL
);
INSERT INTO duties (name, lease_until) VALUES ('archive', 0);
