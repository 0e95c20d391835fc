"""Each tenant's days in numbers, which the overview and its charts show."""
