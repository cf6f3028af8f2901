"""Run by gcloud's own Python, with gcloud's own code: what it makes of our commands and files. It calls no other
service.

Standard input has the questions as JSON, standard output the answers; what gcloud says of a fault is on standard error.

    {"commands": [[argument, ...], ...], "build": PATH, "uploads": [[DIRECTORY, IGNORE_FILE or null], ...]}
    {"understood": [true, ...], "build": {...}, "uploads": [[path, ...], ...]}
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any


def gcloud(module: str) -> Any:
    return importlib.import_module(f"googlecloudsdk.{module}")


def understands(parser: Any, arguments: list[str]) -> bool:
    """As if it were typed, up to where it would be carried out."""
    try:
        parser.parse_args(arguments)
    except SystemExit:
        print(f"the command was: gcloud {' '.join(arguments)}", file=sys.stderr)
        return False
    return True


def build(path: str) -> Any:
    """A field that Cloud Build does not know raises."""
    messages = gcloud("api_lib.cloudbuild.cloudbuild_util").GetMessagesModule()
    loaded = gcloud("api_lib.cloudbuild.config").LoadCloudbuildConfigFromPath(path, messages)
    return importlib.import_module("apitools.base.py.encoding").MessageToPyValue(loaded)


def uploaded(directory: str, ignore_file: str | None) -> list[str]:
    chooser = gcloud("command_lib.util.gcloudignore").GetFileChooserForDir(
        directory, write_on_disk=False, ignore_file=ignore_file
    )
    return sorted(chooser.GetIncludedFiles(directory, include_dirs=False))


def main(sdk: str) -> None:
    sys.path[:0] = [f"{sdk}/lib", f"{sdk}/lib/third_party"]
    asked = json.load(sys.stdin)
    answers: dict[str, Any] = {}
    if "commands" in asked:
        parser = gcloud("gcloud_main").CreateCLI([])._CLI__parser
        answers["understood"] = [understands(parser, command) for command in asked["commands"]]
    if "build" in asked:
        answers["build"] = build(asked["build"])
    if "uploads" in asked:
        answers["uploads"] = [uploaded(*one) for one in asked["uploads"]]
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
