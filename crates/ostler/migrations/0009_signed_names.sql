-- The names of messages that came by signed calls are kept for much longer than others:
-- whoever has such a call can make it again at any time, for it bears no date. Each sort
-- has an index of its own, so that those that stay are not looked at when others go.

DROP INDEX inbox_by_age;
CREATE INDEX inbox_by_age ON inbox (received_at)
    WHERE channel NOT IN ('whatsapp', 'sms', 'group');
CREATE INDEX inbox_signed_by_age ON inbox (received_at)
    WHERE (channel IN ('whatsapp', 'sms', 'group')) IS TRUE;
