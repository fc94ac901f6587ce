"""What a script is told when it cannot have what it asked for."""

from berth.errors import BerthError, Code, Exit, refusal_status


class NoBerth(BerthError):  # noqa: N818 -- it reads as what it says
    """No berthd answers. `hint` says how to start one."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(Code.NO_BERTH, message, hint=hint, exit_status=Exit.UNAVAILABLE)
        if hint:
            self.add_note(hint)


class LeaseRefused(BerthError):  # noqa: N818 -- it reads as what it says
    """berthd refused a lease: `code` is stable, `message` a sentence, `hint` the way out."""

    def __init__(self, code: Code, message: str, hint: str = "") -> None:
        super().__init__(code, message, hint=hint, exit_status=self._exit_status(code))
        if hint:
            self.add_note(hint)

    @staticmethod
    def _exit_status(code: Code) -> Exit:
        return refusal_status(code)


class WaitExpired(LeaseRefused):
    """The wait ran out; waiting longer might have helped. `code` says what stood in the way."""

    @staticmethod
    def _exit_status(code: Code) -> Exit:  # noqa: ARG004 -- whatever stood in the way
        return Exit.NOT_IN_TIME


class LeaseStopped(LeaseRefused):
    """A person stopped this script's lease, or its request: it is not to come back."""

    @staticmethod
    def _exit_status(code: Code) -> Exit:  # noqa: ARG004 -- it was stopped, whatever the code
        return Exit.STOPPED_BY_BERTH
