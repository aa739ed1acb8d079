"""Signs requests with Twilio's own library: a line of JSON in, a signature out."""

import json
import sys

from twilio.request_validator import RequestValidator


class Params(dict):
    """A form in which a name can have several values."""

    def getall(self, name):
        return self[name]


for line in sys.stdin:
    request = json.loads(line)
    params = Params()
    for name, value in request["params"]:
        params.setdefault(name, []).append(value)
    validator = RequestValidator(request["token"])
    print(validator.compute_signature(request["url"], params), flush=True)
