"""Schedules an hourly deployment in a fresh Prefect database and prints how many runs one scheduler loop creates.

A script of its own, because Prefect reads its settings once per process: `test_pins` starts it with PREFECT_HOME in
a folder that the test throws away. Nothing listens on a port.
"""

import asyncio
import sys

from prefect.server.database import PrefectDBInterface, provide_database_interface
from prefect.server.models import deployments, flow_runs, flows
from prefect.server.schemas.core import Deployment, DeploymentSchedule, Flow
from prefect.server.schemas.schedules import CronSchedule
from prefect.server.services.scheduler import schedule_deployments


async def register_hourly_deployment(database: PrefectDBInterface) -> None:
    """One deployment with one active schedule, as `serve` would register it."""
    hourly = DeploymentSchedule(schedule=CronSchedule(cron="0 * * * *", timezone="Europe/Vienna"), active=True)
    async with database.session_context(begin_transaction=True) as session:
        flow = await flows.create_flow(session, Flow(name="release"))
        await deployments.create_deployment(session, Deployment(name="hourly", flow_id=flow.id, schedules=[hourly]))


async def count_scheduled_runs() -> int:
    """The runs in the database after one loop of the scheduler service."""
    database = provide_database_interface()
    await database.create_db()
    await register_hourly_deployment(database)
    await schedule_deployments()
    async with database.session_context() as session:
        return await flow_runs.count_flow_runs(session)


if __name__ == "__main__":
    sys.stdout.write(f"{asyncio.run(count_scheduled_runs())}\n")
