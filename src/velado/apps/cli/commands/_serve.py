"""`velado serve`: questions over HTTP, and the tokens of those who may ask."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import click
import typer
from typer.core import TyperGroup

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.errors import ParameterError

ROLES = ("analyst", "owner")
ServiceFile = Annotated[Path, typer.Argument(metavar="SERVICE", show_default=False)]


def run(
    service: ServiceFile,
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="ADDRESS", help="Address to listen on; others than loopback need TLS."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", help="Port; 0 takes any free one.")] = 8443,
    tls_cert: Annotated[
        Path | None,
        typer.Option("--tls-cert", metavar="FILE", help="Certificate chain (PEM).", show_default=False),
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option("--tls-key", metavar="FILE", help="Private key (PEM).", show_default=False),
    ] = None,
    plain_http: Annotated[
        bool,
        typer.Option("--plain-http", help="Allow plain HTTP beyond loopback: a proxy in front does the TLS."),
    ] = False,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", help="Processes that answer; each holds every data set.")
    ] = 1,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Answer questions over HTTP.

    The data sets, budgets and limits stand in SERVICE (TOML). Stops on Ctrl+C or SIGTERM when running questions have ended.
    """
    portuguese = flags.language(lang) == "pt"
    if not 0 <= port <= 65_535:
        raise ParameterError("--port must lie from 0 to 65535.", "There are no other ports.", "Choose one.")
    from velado.apps.service import web_server

    def ready(address: str) -> None:
        if as_json:
            show.as_json({"address": address})
        elif not quiet:
            show.line(f"Atendendo em {address}" if portuguese else f"Serving on {address}")

    web_server.run(service, web_server.Listening(host, port, tls_cert, tls_key, plain_http, workers), ready)


def add(
    service: ServiceFile,
    analyst: Annotated[str, typer.Argument(metavar="ANALYST", show_default=False)],
    role: Annotated[
        str, typer.Option("--role", metavar="analyst|owner", help="What the token opens.")
    ] = "analyst",
    days: Annotated[
        float | None,
        typer.Option("--days", metavar="N", help="Days until it ends; default: never.", show_default=False),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option("--dataset", metavar="NAME", help="Only this data set; repeatable.", show_default=False),
    ] = None,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """Make a token for ANALYST and print it, once."""
    portuguese = flags.language(lang) == "pt"
    from velado.apps.service.service_settings import read_settings
    from velado.apps.service.tokens import add_token

    settings = read_settings(service)
    for name in dataset or ():
        flags.one_of(name, tuple(settings.datasets), "--dataset")
    chosen = flags.one_of(role, ROLES, "--role")
    text, token = add_token(
        settings.tokens, analyst, "owner" if chosen == "owner" else "analyst", days, tuple(dataset or ())
    )
    if as_json:
        show.as_json({"token": text, "id": token.id, "analyst": token.analyst, "role": token.role})
        return
    show.line(text)
    if not quiet:
        show.note(
            "Este código não será mostrado de novo; entregue-o por um canal seguro."
            if portuguese
            else "This token is not shown again; hand it over by a safe way."
        )


def revoke(
    service: ServiceFile,
    name: Annotated[str, typer.Argument(metavar="ID|ANALYST", show_default=False)],
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """End a token by its id, or all tokens of an analyst."""
    portuguese = flags.language(lang) == "pt"
    from velado.apps.service.service_settings import read_settings
    from velado.apps.service.tokens import revoke_token

    ended = revoke_token(read_settings(service).tokens, name)
    if as_json:
        show.as_json({"revoked": [token.id for token in ended]})
    elif not quiet:
        show.line(f"Códigos encerrados: {len(ended)}." if portuguese else f"Tokens ended: {len(ended)}.")


def listing(
    service: ServiceFile,
    as_json: flags.AsJson = False,
    lang: flags.Lang = None,
    debug: flags.Debug = False,
    quiet: flags.Quiet = False,
) -> None:
    """List tokens: who, which role, since and until when. Never the tokens."""
    portuguese = flags.language(lang) == "pt"
    from velado.apps.service.service_settings import read_settings
    from velado.apps.service.tokens import read_tokens

    now = datetime.now(UTC)
    found = [
        {
            "id": token.id,
            "analyst": token.analyst,
            "role": token.role,
            "state": token.state(now),
            "created": token.created[:10],
            "expires": None if token.expires is None else token.expires[:10],
            "datasets": list(token.datasets),
        }
        for token in read_tokens(read_settings(service).tokens).tokens
    ]
    if as_json:
        show.as_json({"tokens": found})
        return
    head = (
        ("id", "analista", "papel", "estado", "criado", "termina", "dados")
        if portuguese
        else tuple(found[0] if found else ("id",))
    )
    rows = [
        [
            "-" if value in (None, []) else ", ".join(value) if isinstance(value, list) else value
            for value in entry.values()
        ]
        for entry in found
    ]
    show.table("", head, rows)


class ServeGroup(TyperGroup):
    """`velado serve service.toml` is `velado serve run service.toml`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments with `run` put first where no sub-command is named."""
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


def commands() -> typer.Typer:
    """`serve` as a group: `serve SERVICE`, `serve token add`, `serve token revoke`, `serve token list`."""
    settings = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
    group = typer.Typer(
        cls=ServeGroup,
        help="Answer questions over HTTP; manage who may ask.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings=settings,
    )
    group.command("run", cls=flags.Command)(run)
    tokens = typer.Typer(help="Who may ask.", rich_markup_mode=None, context_settings=settings)
    tokens.command("add", cls=flags.Command)(add)
    tokens.command("revoke", cls=flags.Command)(revoke)
    tokens.command("list", cls=flags.Command)(listing)
    group.add_typer(tokens, name="token")
    return group
