"""`velado serve`: questions over HTTP, and the tokens of those who may ask."""

from __future__ import annotations

from contextvars import copy_context
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import click
import typer

from velado.apps.cli import show
from velado.apps.cli.app import Group, OfSetting, OneOf, argument, command, group, one_of, option
from velado.text import say

_LISTENING = "velado.apps.service.web_server.Listening"
ServiceFile = Annotated[Path, argument("SERVICE", help="The service file (TOML).")]


class ServeGroup(Group):
    """`velado serve service.toml` is `velado serve run service.toml`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments with `run` put first where no sub-command is named."""
        if args and args[0] not in (*self.commands, "-h", "--help", "--lang"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = group("serve", help="Answer questions over HTTP; manage who may ask.", cls=ServeGroup)
_ROLES = {"analyst": say("analyst"), "owner": say("owner")}
_STATES = {"valid": say("valid"), "expired": say("expired"), "revoked": say("revoked")}
tokens = group("token", help="Who may ask.", within=app)


def commands() -> typer.Typer:
    """`serve` as a command line of its own."""
    return app


@command("run", app)
def run(
    service: ServiceFile,
    *,
    host: Annotated[
        str, option("--host ADDRESS", help="Address to listen on; others than loopback need TLS.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        option(
            "--port N", click_type=OfSetting(f"{_LISTENING}.port", "N"), help="Port; 0 takes any free one."
        ),
    ] = 8443,
    tls_cert: Annotated[Path | None, option("--tls-cert FILE", help="Certificate chain (PEM).")] = None,
    tls_key: Annotated[Path | None, option("--tls-key FILE", help="Private key (PEM).")] = None,
    plain_http: Annotated[
        bool, option("--plain-http", help="Allow plain HTTP beyond loopback: a proxy in front does the TLS.")
    ] = False,
    workers: Annotated[
        int,
        option(
            "--workers N",
            click_type=OfSetting(f"{_LISTENING}.workers", "N"),
            help="Processes that answer; each holds every data set.",
        ),
    ] = 1,
) -> None:
    """Answer questions over HTTP.

    The data sets, budgets and limits stand in SERVICE (TOML). Stops on Ctrl+C or SIGTERM when running questions have ended.
    """
    from velado.apps.service import web_server

    ours = copy_context()

    def ready(address: str) -> None:
        # The server may call from a thread of its own, which would begin in English and aloud.
        ours.copy().run(show.result, {"address": address}, [say("Serving on {address}", address=address)])

    web_server.run(service, web_server.Listening(host, port, tls_cert, tls_key, plain_http, workers), ready)


@command("add", tokens)
def add(
    service: ServiceFile,
    analyst: Annotated[str, argument("ANALYST", help="Who asks, as the ledger writes it down.")],
    *,
    role: Annotated[
        Literal["analyst", "owner"],
        option("--role", click_type=OneOf("analyst", "owner"), help="What the token opens."),
    ] = "analyst",
    days: Annotated[
        float | None,
        option(
            "--days N",
            click_type=OfSetting("velado.apps.service.tokens:TokenDays", "N"),
            help="Days until it ends; default: never.",
        ),
    ] = None,
    dataset: Annotated[
        list[str] | None, option("--dataset NAME", help="Only this data set; repeatable.")
    ] = None,
) -> None:
    """Make a token for ANALYST and print it, once."""
    from velado.apps.service.service_settings import read_settings
    from velado.apps.service.tokens import add_token

    settings = read_settings(service)
    for name in dataset or ():
        one_of(name, tuple(settings.datasets), "--dataset")
    text, token = add_token(settings.tokens, analyst, role, days, tuple(dataset or ()))
    if show.manner().quiet and not show.manner().as_json:
        show.line(text)
        return
    hand_over = show.Note(say("This token is not shown again; hand it over by a safe way."))
    document = {"token": text, "id": token.id, "analyst": token.analyst, "role": token.role}
    show.result(document, [text, hand_over])


@command("revoke", tokens)
def revoke(
    service: ServiceFile,
    name: Annotated[
        str, argument("ID|ANALYST", help="The token's id, or the analyst all of whose tokens are meant.")
    ],
) -> None:
    """End a token by its id, or all tokens of an analyst."""
    from velado.apps.service.service_settings import read_settings
    from velado.apps.service.tokens import revoke_token

    ended = revoke_token(read_settings(service).tokens, name)
    show.result({"revoked": [token.id for token in ended]}, [say("Tokens ended: {count}.", count=len(ended))])


@command("list", tokens)
def listing(service: ServiceFile) -> None:
    """List tokens: who, which role, since and until when. Never the tokens."""
    from velado.apps.service.service_settings import read_settings
    from velado.apps.service.tokens import read_tokens

    now = datetime.now(UTC)
    found = read_tokens(read_settings(service).tokens).tokens
    if show.manner().as_json:
        entries = [
            {
                "id": token.id,
                "analyst": token.analyst,
                "role": token.role,
                "state": token.state(now),
                "created": token.created[:10],
                "expires": None if token.expires is None else token.expires[:10],
                "datasets": list(token.datasets),
            }
            for token in found
        ]
        show.as_json({"tokens": entries})
        return
    head = ["id", say("analyst"), say("role"), say("state"), say("created"), say("expires"), say("datasets")]
    rows = [
        [
            token.id,
            token.analyst,
            _ROLES[token.role],
            _STATES[token.state(now)],
            token.created[:10],
            (token.expires or "-")[:10],
            ", ".join(token.datasets) or "-",
        ]
        for token in found
    ]
    show.present([show.table("", head, rows)])
