"""What several machines need, as one folder: the agreement, the Flower app, Flower's settings, and the exact commands.

    agreement/     federation.toml, schema.toml, taxonomies/    every party has its own copy and reads it
    app/           the Flower app: three lines that name velado's client and server app
    flower/        Flower's own folder on the coordinator's machine, with the address of the SuperLink
    certificates/  empty: the consortium puts its certificates here
    environment.sh variables every command is started with
    START.md       the commands

The agreement holds no row and names no table; a machine's table is named on that machine alone, by --node-config.
"""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import tomli_w

from velado.data.schema import Column, Schema
from velado.errors import OutputError, ParameterError
from velado.federated.agreement import Agreement, agree, read_recipe
from velado.federated.quiet import SILENT

CONNECTION = "velado"
_ADDRESS = re.compile(r"[A-Za-z0-9.\-]+:[0-9]{1,5}")


def write_deployment(recipe_file: Path, folder: Path, address: str) -> Agreement:
    """*folder* holds everything several machines need; what the schema leaves open, or an existing folder, is an error."""
    if not _ADDRESS.fullmatch(address) or not 1 <= int(address.rpartition(":")[2]) <= 65_535:
        raise ParameterError(
            "The address of the SuperLink is not HOST:PORT, with a port from 1 to 65535.",
            "Clients must know where to connect.",
            "Write for example --address hub.example.org:9443.",
        )
    recipe, schema = read_recipe(recipe_file)
    agreement = agree(recipe, schema)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(
            f"'{folder.name}' exists already and is not empty.",
            "Two federations would be mixed.",
            "Choose another folder.",
        )
    plain, trees = _schema_files(schema)
    written = replace(recipe, schema="schema.toml", table=None)
    files = {
        "agreement/federation.toml": tomli_w.dumps(written.to_dict()),
        "agreement/schema.toml": tomli_w.dumps(plain.to_dict()),
        **{f"agreement/{name}": text for name, text in trees.items()},
        "app/pyproject.toml": tomli_w.dumps(_project()),
        "app/velado_app/__init__.py": '"""velado\'s Flower app."""\n',
        "app/velado_app/client_app.py": "from velado.federated.client_app import app\n\n__all__ = ['app']\n",
        "app/velado_app/server_app.py": "from velado.federated.server_app import app\n\n__all__ = ['app']\n",
        "flower/config.toml": tomli_w.dumps(_connection(folder, address)),
        "certificates/README.md": "Put ca.crt on every machine; server.crt and server.key on the SuperLink's alone.\n",
        "environment.sh": _exports(folder) + "\n",
        "START.md": start_page(folder, address, agreement),
    }
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    except OSError as error:
        raise OutputError(
            f"The folder '{folder.name}' cannot be written ({error.strerror or 'system error'}).",
            "The machines would have half of what they need.",
            "Check the path, the permissions and the space left.",
        ) from None
    return agreement


def superlink_command(folder: Path, address: str, host: str = "0.0.0.0") -> list[str]:
    """Start of the SuperLink: TLS, only registered SuperNodes, nothing installed at run time."""
    held = folder.absolute() / "certificates"
    return [
        "flower-superlink",
        *("--host", host, "--port", address.rpartition(":")[2]),
        *("--ssl-ca-certfile", str(held / "ca.crt")),
        *("--ssl-certfile", str(held / "server.crt"), "--ssl-keyfile", str(held / "server.key")),
        "--enable-supernode-auth",
        "--disable-runtime-dependency-installation",
    ]


def supernode_command(
    folder: Path, address: str, client: int, table: str, work: str, key: str, port: int = 8020
) -> list[str]:
    """Start of one client's SuperNode: its number, table, private folder and key are its own."""
    whole = folder.absolute()
    node = f"client={client} agreement={_quoted(str(whole / 'agreement'))} table={_quoted(table)} work={_quoted(work)}"
    return [
        "flower-supernode",
        *("--superlink", address, "--root-certificates", str(whole / "certificates" / "ca.crt")),
        *("--auth-supernode-private-key", key),
        # Between the SuperNode and its own client app: this machine only.
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--node-config", node),
    ]


def register_command(public_key: str) -> list[str]:
    """The coordinator lets one SuperNode in, by its public key."""
    return ["flwr", "supernode", "register", public_key, CONNECTION]


def run_command(folder: Path, output: str) -> list[str]:
    """The coordinator starts the rounds."""
    whole = folder.absolute()
    settings = f"agreement={_quoted(str(whole / 'agreement'))} output={_quoted(output)}"
    return ["flwr", "run", str(whole / "app"), CONNECTION, "--run-config", settings, "--stream"]


def environment(folder: Path) -> dict[str, str]:
    """Variables every command of a deployment is started with: nothing is reported, Flower keeps to its folder."""
    # A client's matrix products are small: threads that wait for each other would only cost time.
    return {**SILENT, "OMP_NUM_THREADS": "1", "FLWR_HOME": str(folder.absolute() / "flower")}


def start_page(folder: Path, address: str, agreement: Agreement) -> str:
    """START.md: the commands in the order they are run."""
    federation = agreement.terms.federation
    nodes = supernode_command(
        folder, address, 1, "/path/to/own-table.csv", "/path/to/private", "supernode.key"
    )
    host = address.rpartition(":")[0]
    return f"""# Start the federation

Digest of the terms: `{agreement.terms.digest}`. Every party compares it before it starts
(`velado federate agreement/federation.toml --dry-run` prints it).

On every machine, before each command (the same lines stand in `environment.sh`). Each hospital sets `FLWR_HOME` to a
folder of its own machine, and the paths in the commands to where it keeps its copy of this folder:

```sh
{_exports(folder)}
```

1. Certificates. `certificates/` needs `ca.crt` on every machine; `server.crt` and `server.key`, for `{host}` and
   127.0.0.1 (the SuperLink's own helper process uses that), on the SuperLink's machine only.
2. The coordinator starts the SuperLink:

   ```sh
   {shlex.join(superlink_command(folder, address))}
   ```
3. Each of the {federation.clients} clients makes a key, keeps `supernode.key` and sends `supernode.key.pub` to the
   coordinator:

   ```sh
   ssh-keygen -t ecdsa -b 384 -N '' -f supernode.key
   ```
4. The coordinator registers each:

   ```sh
   {shlex.join(register_command("supernode.key.pub"))}
   ```
5. Each client starts its SuperNode, with its own number from 1 to {federation.clients}:

   ```sh
   {shlex.join(nodes)}
   ```
   Rows are anonymized when the first message comes, and the first round waits for that, longer for a larger
   `patience` (here {federation.patience:g} seconds). A SuperNode that was killed may be refused until the SuperLink has
   noticed that it is gone: wait a minute and start it again.
6. The coordinator starts the rounds; fit.json, rounds.csv, model.npz and report.md are written to the output folder:

   ```sh
   {shlex.join(run_command(folder, "/path/to/output"))}
   ```
"""


def _exports(folder: Path) -> str:
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in environment(folder).items())


def _quoted(text: str) -> str:
    if '"' in text or "\\" in text or "\n" in text:
        raise ParameterError(
            "A path has a quote, a backslash or a line break in it.",
            "Flower's configuration cannot carry it.",
            "Choose another path.",
        )
    return f'"{text}"'


def _project() -> Mapping[str, object]:
    return {
        "project": {
            "name": "velado-app",
            "version": "1.0.0",
            "description": "Federated training over locally anonymized rows.",
            "license": "Apache-2.0",
            "dependencies": [],
        },
        "tool": {
            "flwr": {
                "app": {
                    "publisher": "velado",
                    "components": {
                        "serverapp": "velado_app.server_app:app",
                        "clientapp": "velado_app.client_app:app",
                    },
                    "config": {"agreement": "", "output": ""},
                }
            }
        },
    }


def _connection(folder: Path, address: str) -> Mapping[str, object]:
    authority = str(folder.absolute() / "certificates" / "ca.crt")
    return {
        "superlink": {
            "default": CONNECTION,
            CONNECTION: {"address": address, "root-certificates": authority},
        }
    }


def _schema_files(schema: Schema) -> tuple[Schema, dict[str, str]]:
    """The schema with its taxonomy files beside it, whatever folder they were read from."""
    files: dict[str, str] = {}
    columns: list[Column] = []
    for number, column in enumerate(schema.columns.values(), start=1):
        spec = column.taxonomy
        if spec is not None and spec.paths is not None:
            name = f"taxonomies/{number}.csv"  # a column's name may hold what a file's may not
            held = io.StringIO()
            csv.writer(held, delimiter=";", lineterminator="\n").writerows(spec.paths)
            files[name] = held.getvalue()
            column = replace(
                column, taxonomy=replace(spec, file=name, options={"separator": ";"}, paths=None)
            )
        elif spec is not None and spec.tree is not None:
            column = replace(column, taxonomy=replace(spec, file=None))
        columns.append(column)
    return schema.with_columns(columns), files
