"""``nova-scheduler-placementd``: Nova's scheduler with claims."""

import os
import sys

MANAGER = "placementd_nova.manager.ClaimingSchedulerManager"


def main() -> None:
    """Starts Nova's scheduler with another manager."""
    # Nova's command prepares threads when it is imported, before any other module of Nova.
    from nova.cmd import scheduler  # noqa: PLC0415

    from nova import service  # noqa: PLC0415

    service.SERVICE_MANAGERS["nova-scheduler"] = MANAGER
    # oslo.config finds the same files as for nova-scheduler by this name.
    sys.argv[0] = os.path.join(os.path.dirname(sys.argv[0]), "nova-scheduler")
    scheduler.main()


if __name__ == "__main__":
    main()
