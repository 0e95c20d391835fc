"""Dates and times: year first, to the second, in UTC."""

DATE_FORMAT = "Y-m-d"
DATETIME_FORMAT = r"Y-m-d H:i:s \U\T\C"
SHORT_DATETIME_FORMAT = "Y-m-d H:i"
