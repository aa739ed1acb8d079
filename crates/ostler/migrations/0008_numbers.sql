-- Which numbers the choices of requests have where they are told by numbers, and how
-- often a message was opened again of which something did not arrive.

-- Where a request is asked by numbers. They go on over all requests of a place; what
-- people see is counted from 1 again now and then.
ALTER TABLE permission_requests ADD COLUMN channel TEXT;
ALTER TABLE permission_requests ADD COLUMN place TEXT;
ALTER TABLE permission_requests ADD COLUMN first_number BIGINT;
ALTER TABLE permission_requests ADD COLUMN last_number BIGINT;
CREATE UNIQUE INDEX permission_requests_by_number
    ON permission_requests (channel, place, first_number) WHERE channel IS NOT NULL;
CREATE INDEX permission_requests_open_at ON permission_requests (channel, place)
    WHERE state = 'open';

-- The last number that was given at a place.
CREATE TABLE choice_numbers (
    channel TEXT NOT NULL,
    place TEXT NOT NULL,
    last BIGINT NOT NULL,
    PRIMARY KEY (channel, place)
);

ALTER TABLE outbox ADD COLUMN reopened BIGINT NOT NULL DEFAULT 0;
