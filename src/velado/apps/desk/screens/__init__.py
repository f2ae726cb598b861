"""The screens, in the order of the walk. Each has a router of its own: it shows a page, and edits the recipe by what its forms say."""

from velado.apps.desk.screens import (
    compare_screen,
    hierarchy_screen,
    history_screen,
    look_screen,
    open_screen,
    people_screen,
    promise_screen,
    roles_screen,
    sign_screen,
    streams_screen,
)

SCREENS = (
    open_screen,
    people_screen,
    roles_screen,
    hierarchy_screen,
    promise_screen,
    compare_screen,
    look_screen,
    sign_screen,
    history_screen,
    streams_screen,
)
