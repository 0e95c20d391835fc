"""The service's settings with the next release's migrations."""

from compliance.settings import *

MIGRATION_MODULES = {"events": "ops.tests.expanding"}
