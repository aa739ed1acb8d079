-- What the gateway's runtime asks and clears away.

-- Who may answer beside the operator, by the name that the channel gives him.
ALTER TABLE permission_requests ADD COLUMN asked_of TEXT;
-- What was said with the decision.
ALTER TABLE permission_requests ADD COLUMN answer TEXT;

CREATE INDEX jobs_unanswered ON jobs (kind, ended_at) WHERE state IN ('dead', 'cancelled');
CREATE INDEX turns_over ON turns (ended_at) WHERE state IN ('ended', 'abandoned');
CREATE INDEX permission_requests_over ON permission_requests (resolved_at)
    WHERE state = 'resolved';
CREATE INDEX audit_by_age ON audit (at);

-- An event of a turn is in the log once, however often it was written.
CREATE UNIQUE INDEX events_once ON events (turn, seq) WHERE seq > 0;
DROP INDEX events_by_turn;
CREATE INDEX events_by_turn ON events (turn, number);
