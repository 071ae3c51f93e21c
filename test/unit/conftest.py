"""What all tests share: nothing that a user has stored."""

import os

# Before any test runs a command, in this process or in one that it starts.
os.environ["PRISM_DB"] = "none"
