"""The labs: notebooks built from src/, and what builds them (`make labs`)."""
