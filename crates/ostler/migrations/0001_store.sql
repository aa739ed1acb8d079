-- The whole store. One text for SQLite and PostgreSQL: every column is TEXT or
-- BIGINT, times are milliseconds since 1970, JSON is text. What must never
-- happen is a constraint here, not only a rule in the code.

-- Numbers that are given out without gaps. The row is updated in the
-- transaction that uses the numbers, so they become visible in their order.
CREATE TABLE counters (
    name TEXT NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);
INSERT INTO counters (name, value) VALUES ('events', 0);
-- The highest event number that retention has removed.
INSERT INTO counters (name, value) VALUES ('events_removed', 0);

CREATE TABLE conversations (
    id TEXT NOT NULL PRIMARY KEY,
    channel TEXT NOT NULL,
    address TEXT NOT NULL,
    agent TEXT,
    model TEXT,
    settings TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    last_user_at BIGINT,
    UNIQUE (channel, address)
);

CREATE TABLE sessions (
    conversation TEXT NOT NULL REFERENCES conversations (id),
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    memo TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (conversation, agent)
);

-- A lane's row is the lock that orders what happens to its jobs.
CREATE TABLE lanes (
    id TEXT NOT NULL PRIMARY KEY,
    last_seq BIGINT NOT NULL
);

CREATE TABLE jobs (
    id TEXT NOT NULL PRIMARY KEY,
    lane TEXT NOT NULL REFERENCES lanes (id),
    -- The place in the lane. Jobs of a lane run in this order.
    seq BIGINT NOT NULL,
    -- The place among all open jobs: a time that never goes back.
    number BIGINT NOT NULL,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    priority BIGINT NOT NULL,
    state TEXT NOT NULL
        CHECK (state IN ('waiting', 'ready', 'running', 'done', 'dead', 'cancelled')),
    -- How often it was claimed: the fencing token of its lease.
    attempt BIGINT NOT NULL,
    -- How many of these ended without an end of the job.
    failures BIGINT NOT NULL,
    max_failures BIGINT NOT NULL,
    not_before BIGINT NOT NULL,
    owner TEXT,
    lease_until BIGINT,
    cancel_requested BIGINT NOT NULL,
    reason TEXT,
    enqueued_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    UNIQUE (lane, seq),
    CHECK ((state = 'running') = (lease_until IS NOT NULL))
);
CREATE UNIQUE INDEX jobs_one_at_a_time ON jobs (lane) WHERE state IN ('ready', 'running');
CREATE INDEX jobs_open ON jobs (lane, seq) WHERE state IN ('waiting', 'ready', 'running');
CREATE INDEX jobs_to_claim ON jobs (priority DESC, number, id) WHERE state = 'ready';
CREATE INDEX jobs_not_begun ON jobs (number, state) WHERE state IN ('waiting', 'ready');
CREATE INDEX jobs_leased ON jobs (lease_until) WHERE state = 'running';
CREATE INDEX jobs_ended ON jobs (ended_at) WHERE state IN ('done', 'dead', 'cancelled');

-- Messages that became jobs, so that the same one twice runs once.
CREATE TABLE inbox (
    channel TEXT NOT NULL,
    message TEXT NOT NULL,
    job TEXT NOT NULL,
    received_at BIGINT NOT NULL,
    PRIMARY KEY (channel, message)
);
CREATE INDEX inbox_by_age ON inbox (received_at);

CREATE TABLE turns (
    id TEXT NOT NULL PRIMARY KEY,
    conversation TEXT NOT NULL REFERENCES conversations (id),
    job TEXT,
    attempt BIGINT NOT NULL,
    agent TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'ended', 'abandoned')),
    result TEXT,
    begun_at BIGINT NOT NULL,
    ended_at BIGINT,
    CHECK ((state = 'ended') = (result IS NOT NULL))
);
CREATE INDEX turns_by_conversation ON turns (conversation, id);
CREATE INDEX turns_by_job ON turns (job);
CREATE INDEX turns_running ON turns (id) WHERE state = 'running';

CREATE TABLE events (
    number BIGINT NOT NULL PRIMARY KEY,
    conversation TEXT REFERENCES conversations (id),
    turn TEXT,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX events_by_conversation ON events (conversation, number);
CREATE INDEX events_by_turn ON events (turn, seq);

CREATE TABLE outbox (
    id TEXT NOT NULL PRIMARY KEY,
    -- What makes the same message the same: it is put once.
    dedupe TEXT NOT NULL UNIQUE,
    conversation TEXT REFERENCES conversations (id),
    turn TEXT,
    channel TEXT NOT NULL,
    address TEXT NOT NULL,
    -- The order in which messages leave for an address.
    number BIGINT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'sending', 'sent', 'failed')),
    attempt BIGINT NOT NULL,
    -- Whether an attempt ended without a word: it may have arrived.
    is_unsure BIGINT NOT NULL,
    next_at BIGINT NOT NULL,
    owner TEXT,
    lease_until BIGINT,
    message TEXT,
    reason TEXT,
    created_at BIGINT NOT NULL,
    ended_at BIGINT,
    CHECK ((state = 'sending') = (lease_until IS NOT NULL))
);
CREATE INDEX outbox_due ON outbox (next_at, number) WHERE state = 'waiting';
CREATE INDEX outbox_leased ON outbox (lease_until) WHERE state = 'sending';
CREATE INDEX outbox_by_address ON outbox (channel, address, number);
CREATE INDEX outbox_open ON outbox (channel, address, number)
    WHERE state IN ('waiting', 'sending');
CREATE INDEX outbox_ended ON outbox (ended_at) WHERE state IN ('sent', 'failed');

CREATE TABLE permission_requests (
    id TEXT NOT NULL PRIMARY KEY,
    conversation TEXT NOT NULL REFERENCES conversations (id),
    turn TEXT NOT NULL,
    -- What the agent calls it.
    request TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'resolved')),
    asked_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    decision TEXT,
    decided_by TEXT,
    resolved_at BIGINT,
    UNIQUE (turn, request),
    CHECK ((state = 'resolved') = (decision IS NOT NULL))
);
CREATE INDEX permission_requests_open ON permission_requests (conversation, id)
    WHERE state = 'open';

CREATE TABLE audit (
    id TEXT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL
);
CREATE INDEX audit_by_subject ON audit (subject, id);
