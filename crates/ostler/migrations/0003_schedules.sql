-- What the gateway begins by itself: schedules and heartbeats.

CREATE TABLE schedules (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    cron TEXT NOT NULL,
    zone TEXT NOT NULL,
    -- The conversation that it speaks in.
    channel TEXT NOT NULL,
    address TEXT NOT NULL,
    -- Where the answers go, if it is not there.
    to_channel TEXT,
    to_address TEXT,
    agent TEXT,
    prompt TEXT NOT NULL,
    missed TEXT NOT NULL CHECK (missed IN ('skip', 'once')),
    is_enabled BIGINT NOT NULL CHECK (is_enabled IN (0, 1)),
    -- Up to which time everything was dealt with. Whoever moves it on makes the run.
    last_slot BIGINT NOT NULL,
    -- The last run.
    job TEXT,
    last_run_at BIGINT,
    n_runs BIGINT NOT NULL,
    n_skipped BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    CHECK ((to_channel IS NULL) = (to_address IS NULL))
);

-- Turns beside the conversation, of heartbeats and hooks, keep no session alive.
ALTER TABLE turns ADD COLUMN is_aside BIGINT NOT NULL DEFAULT 0;

CREATE INDEX conversations_by_last_word ON conversations (last_user_at)
    WHERE last_user_at IS NOT NULL;

-- Those that end at the same time have an order, too.
DROP INDEX jobs_unanswered;
CREATE INDEX jobs_unanswered ON jobs (kind, ended_at, id) WHERE state IN ('dead', 'cancelled');
