"""The studies of `spac study`: each answers one question with a table, pictures and findings."""
