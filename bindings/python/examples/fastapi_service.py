"""A service that stores sensor readings: run it with `uvicorn fastapi_service:app`.

Readings have the keys (sensor, time in seconds), so a query for an interval of a sensor is one range.
"""

from __future__ import annotations

import os
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import tamis.aio
from fastapi import FastAPI, HTTPException, Query, Request
from pydantic import BaseModel


class Reading(BaseModel):
    """A value of a sensor."""

    time: int
    value: float


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Opens the database when the service starts, and closes it when the service ends."""
    folder = os.environ.get("READINGS", "readings")
    async with await tamis.aio.open(folder, keys="tuple", filters="surf@24") as db:
        app.state.db = db
        yield


app = FastAPI(title="Readings", lifespan=lifespan)


def database(request: Request) -> tamis.aio.AsyncDatabase[tuple[Any, ...]]:
    """The database of the service."""
    db: tamis.aio.AsyncDatabase[tuple[Any, ...]] = request.app.state.db
    return db


@app.put("/sensors/{sensor}")
async def put(request: Request, sensor: str, readings: list[Reading]) -> dict[str, int]:
    """Stores readings: all or none."""
    entries = [((sensor, reading.time), struct.pack("<d", reading.value)) for reading in readings]
    await database(request).update(entries, durability="synced")
    return {"stored": len(entries)}


@app.get("/sensors/{sensor}")
async def get(
    request: Request,
    sensor: str,
    start: int = 0,
    end: int = 2**62,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1_000,
) -> list[Reading]:
    """The readings of an interval, oldest first."""
    scan = database(request).range((sensor, start), (sensor, end), limit=limit)
    return [Reading(time=time, value=struct.unpack("<d", value)[0]) async for (_, time), value in scan]


@app.get("/sensors/{sensor}/newest")
async def newest(request: Request, sensor: str) -> Reading:
    """The newest reading."""
    scan = database(request).range((sensor,), (sensor, 2**62), reverse=True, limit=1)
    async for (_, time), value in scan:
        return Reading(time=time, value=struct.unpack("<d", value)[0])
    raise HTTPException(404, f"there are no readings of {sensor}")


@app.delete("/sensors/{sensor}")
async def delete(request: Request, sensor: str, before: int) -> None:
    """Deletes the readings before a time by one record."""
    await database(request).delete_range((sensor, 0), (sensor, before))
