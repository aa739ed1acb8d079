-- Since when a message has been tried: what is for a chat is tried for a day, however often
-- that is. What is opened again begins anew.
ALTER TABLE outbox ADD COLUMN tried_since BIGINT;
