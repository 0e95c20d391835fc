"""The task of incidents."""

from compliance.core.tasks import task_calling
from incidents.duties.watch import watch

watch_clocks = task_calling("incidents.watch", watch)
