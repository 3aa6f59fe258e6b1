"""sdk.py URL APPLICATION: pyroscope-io as in its manual, on a program that burns processor time."""

import os
import sys
import time

import pyroscope


def burn_processor(until):
    n = 1
    while time.monotonic() < until:
        for i in range(100_000):
            n = (n * 1103515245 + i) % 2147483648
    return n


token = os.environ.get("PYROSCOPE_AUTH_TOKEN", "")  # the password of any user
pyroscope.configure(
    application_name=sys.argv[2], server_address=sys.argv[1], sample_rate=100, tags={"region": "eu"},
    basic_auth_username="sdk" if token else "", basic_auth_password=token,
)
with pyroscope.tag_wrapper({"controller": "burner"}):
    print(burn_processor(time.monotonic() + 14))
pyroscope.shutdown()
