"""Django's settings, gathered from rooms; each room declares the environment variables it reads.

docs/settings.md lists them all and says what each is for.
"""

from compliance.settings.api import *
from compliance.settings.appearance import *
from compliance.settings.console import *
from compliance.settings.declaring import refuse_problems
from compliance.settings.framework import *
from compliance.settings.identity import *
from compliance.settings.processes import *
from compliance.settings.records import *
from compliance.settings.service import *
from compliance.settings.stores import *
from compliance.settings.traffic import *

refuse_problems()
