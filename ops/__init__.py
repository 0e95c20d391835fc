"""Operations: bootstrap, demo, doctor, dashboard, database privileges, key inventory."""
