-- What the HTTP service keeps: projects, commands, keys, webhooks.

CREATE TABLE projects (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    -- The working directory, with no link in it.
    directory TEXT NOT NULL,
    -- Nobody in particular means the default of projects.
    agent TEXT,
    -- How its turns are run, as JSON.
    settings TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- What was done in it is kept for a while.
    deleted_at BIGINT
);
CREATE UNIQUE INDEX projects_by_name ON projects (name) WHERE deleted_at IS NULL;

ALTER TABLE conversations ADD COLUMN project TEXT;
CREATE INDEX conversations_by_project ON conversations (project) WHERE project IS NOT NULL;
CREATE INDEX sessions_by_name ON sessions (session);

ALTER TABLE turns ADD COLUMN project TEXT;
CREATE INDEX turns_by_project ON turns (project, id) WHERE project IS NOT NULL;

CREATE TABLE commands (
    -- The same as the job's, but for the prefix.
    id TEXT NOT NULL PRIMARY KEY,
    project TEXT NOT NULL REFERENCES projects (id),
    conversation TEXT NOT NULL REFERENCES conversations (id),
    kind TEXT NOT NULL CHECK (kind IN ('prompt', 'shell', 'git')),
    -- The name under which its events are read; several may share one.
    stream TEXT NOT NULL,
    agent TEXT,
    -- The prompt, or the command line.
    text TEXT NOT NULL,
    -- Who gave it: the id of a key.
    actor TEXT NOT NULL,
    state TEXT NOT NULL
        CHECK (state IN ('queued', 'running', 'completed', 'failed', 'cancelled')),
    -- What came of it, as JSON, once it is over.
    result TEXT,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    CHECK ((state IN ('queued', 'running')) = (ended_at IS NULL)),
    CHECK ((ended_at IS NULL) = (result IS NULL))
);
CREATE INDEX commands_by_project ON commands (project, id);
CREATE INDEX commands_open ON commands (id) WHERE ended_at IS NULL;
CREATE INDEX commands_open_in ON commands (project, id) WHERE ended_at IS NULL;
CREATE INDEX commands_ended ON commands (ended_at) WHERE ended_at IS NOT NULL;

-- Which command of which project an event belongs to.
ALTER TABLE events ADD COLUMN project TEXT;
ALTER TABLE events ADD COLUMN command TEXT;
ALTER TABLE events ADD COLUMN stream TEXT;
CREATE INDEX events_by_project ON events (project, number) WHERE project IS NOT NULL;
CREATE INDEX events_by_stream ON events (project, stream, number) WHERE stream IS NOT NULL;
CREATE INDEX events_by_command ON events (command, number) WHERE command IS NOT NULL;
-- A command ends once.
CREATE UNIQUE INDEX events_one_end ON events (command) WHERE type = 'command_complete';

-- What is counted often.
CREATE INDEX jobs_dead ON jobs (id) WHERE state = 'dead';
CREATE INDEX outbox_failed ON outbox (channel) WHERE state = 'failed';

CREATE TABLE keys (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    -- The start of the key, by which it is found and known.
    prefix TEXT NOT NULL UNIQUE,
    -- The SHA-256 of the whole key, in hexadecimal digits.
    hash TEXT NOT NULL,
    -- Lists, as JSON. Nothing for projects or networks means all of them.
    scopes TEXT NOT NULL,
    projects TEXT,
    networks TEXT,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    last_used_at BIGINT
);

INSERT INTO duties (name, lease_until) VALUES ('first_key', 0);

-- Answers to requests that must not be done twice.
CREATE TABLE answered_requests (
    actor TEXT NOT NULL,
    name TEXT NOT NULL,
    -- The SHA-256 of the request: the same name is for the same request.
    fingerprint TEXT NOT NULL,
    status BIGINT NOT NULL,
    body TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (actor, name)
);
CREATE INDEX answered_requests_by_age ON answered_requests (at);

CREATE TABLE webhooks (
    id TEXT NOT NULL PRIMARY KEY,
    -- Nothing means all projects.
    project TEXT REFERENCES projects (id),
    url TEXT NOT NULL,
    -- A list, as JSON.
    events TEXT NOT NULL,
    -- What its calls are signed with.
    secret TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    deleted_at BIGINT
);
CREATE INDEX webhooks_alive ON webhooks (project) WHERE deleted_at IS NULL;
-- What webhooks were told.
CREATE INDEX outbox_notices ON outbox (address, id) WHERE channel = 'notice';

CREATE INDEX audit_by_actor ON audit (actor, id);

-- What was chosen while the gateway ran, and outlives it.
CREATE TABLE choices (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL,
    changed_at BIGINT NOT NULL
);
