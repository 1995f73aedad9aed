"""The one exception a user is meant to read: what is wrong, where, with which number, what to
do."""


class UserError(Exception):
    """Bad input from a person (config, trace, checkpoint, machine).

    The message is one line in plain words. Commands print it and exit with code 2, without a
    traceback.
    """
