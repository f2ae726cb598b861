"""Marks lie where their figures are; lines of the original data and the commonest class stand in every panel."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from velado.measures.measure_registry import losses, risks
from velado.measures.models.quality import UNKNOWN, Interval
from velado.study.evaluate.analysis import AcrossClients, ReleaseSetting, StudyRow
from velado.study.evaluate.page import to_html
from velado.study.evaluate.page._convergence import curves_of, needed, over_clients, participation
from velado.study.evaluate.page._tradeoff import settings_of
from velado.study.evaluate.study_settings import FederatedAxes
from velado.text import told

from .studies import trainings, with_fits


def figures(page: str, section: str) -> list[ElementTree.Element]:
    text = re.search(rf'<section id="{section}">.*?</section>', page, re.DOTALL)[0]
    return [ElementTree.fromstring(one) for one in re.findall(r'<svg role="img".*?</svg>', text, re.DOTALL)]


def places(chart: ElementTree.Element, name: str) -> dict[int, tuple[float, float]]:
    marks = [mark for mark in chart.iter("use") if mark.get(name) and not mark.get("data-gap")]
    return {int(mark.get(name)): (float(mark.get("x")), float(mark.get("y"))) for mark in marks}


def test_more_risk_lies_to_the_right_and_more_loss_higher(facts) -> None:
    settings = settings_of(facts.in_order())
    chart = figures(to_html(facts), "tradeoff")[0]
    marks = places(chart, "data-s")
    assert len(marks) == len(settings) == 5
    by_risk = sorted(marks, key=lambda at: settings[at]["record_linkage"].mean)
    assert [marks[at][0] for at in by_risk] == sorted(marks[at][0] for at in by_risk)
    by_loss = sorted(marks, key=lambda at: settings[at]["ncp"].mean)
    assert [marks[at][1] for at in by_loss] == sorted((marks[at][1] for at in by_loss), reverse=True)


def test_each_method_has_a_line_with_k_along_it_and_the_recommended_point_is_ringed(facts) -> None:
    chart = figures(to_html(facts), "tradeoff")[0]
    groups = [group for group in chart.iter("g") if group.get("class") == "s"]
    marks = {group.get("data-m"): group for group in groups if group.find("use") is not None}
    lines = {group.get("data-m"): group.find("path") for group in groups if group.find("path") is not None}
    assert len(marks) == 3 and len(lines) == 2 and None not in lines
    for method, path in lines.items():
        ends = [(mark.get("x"), mark.get("y")) for mark in marks[method].findall("use") if mark.get("data-s")]
        assert path.get("d") == "M" + "L".join(f"{x} {y}" for x, y in ends)
        assert {text.text for text in marks[method].findall("text")} <= {"3", "6"}
    assert sum(mark.get("href") == "#chosen" for mark in chart.iter("use")) == 1


def test_a_point_tells_method_k_loss_risk_and_quality_with_intervals(facts) -> None:
    chart = figures(to_html(facts), "tradeoff")[0]
    told = [mark.find("title").text for mark in chart.iter("use") if mark.find("title") is not None]
    (one,) = [text for text in told if text.startswith("mondrian, k = 3\n")]
    for pattern in (
        r"information loss \(NCP\): [\d.]+% \([\d.]+…[\d.]+\)",
        r"record linkage: [\d.]+% \(",
        r"points of accuracy lost: -?[\d.]+ points \(",
        r"decision-tree: accuracy [\d.]+% \(",
        r"logistic-regression: accuracy [\d.]+% \(",
    ):
        assert re.search(pattern, one), one


def test_a_setting_without_risk_is_named_and_not_drawn(facts) -> None:
    releases = tuple(
        replace(row, numbers={**row.numbers, "record_linkage": UNKNOWN})
        if row.setting == ReleaseSetting("mondrian", 3)
        else row
        for row in facts.releases
    )
    page = to_html(replace(facts, releases=releases))
    assert len(places(figures(page, "tradeoff")[0], "data-s")) == 4
    assert "Not drawn, because loss or risk is not known: mondrian, k\u00a0=\u00a03." in page


def test_panels_show_intervals_the_original_data_and_the_commonest_class_where_they_belong(facts) -> None:
    panel = figures(to_html(facts), "quality")[0]
    rows = [row for row in facts.quality if row.protocol == "split-first"]
    tree = {row.setting: row["accuracy"].mean for row in rows if row.model == "decision-tree"}
    original = tree.pop(ReleaseSetting("original"))
    lines = {path.get("class"): path for path in panel.iter("path") if path.get("class")}
    y = {name: float(re.match(r"M[\d.]+ ([\d.]+)H", lines[name].get("d"))[1]) for name in ("base", "common")}
    marks = [place[1] for place in places(panel, "data-r").values()]
    assert len(marks) == 4
    majority = next(row["accuracy"].mean for row in rows if row.model == "majority")
    below = sum(value < majority for value in tree.values())
    assert sum(mark > y["common"] for mark in marks) == below
    above = sum(value > original for value in tree.values())
    assert sum(mark < y["base"] for mark in marks) == above
    whiskers = [path.get("d") for path in panel.iter("path") if path.get("class") == "w"]
    assert sum(text.count("V") for text in whiskers) == 4


def test_only_the_chosen_measures_are_shown_at_first(facts) -> None:
    page = to_html(with_fits(facts))
    plots = re.findall(r'<figure class="plot[^>]*>', page)
    shown = [plot for plot in plots if "hidden" not in plot]
    assert len(plots) == len(losses()) * len(risks()) + 12 + 6 and len(shown) == 1 + 2 + 2
    assert 'data-loss="ncp" data-risk="record_linkage"' in shown[0]
    assert all('data-metric="accuracy" data-protocol="split-first"' in plot for plot in shown[1:3])


def test_curves_break_where_a_round_has_no_value_and_gaps_are_marked(facts) -> None:
    page = to_html(with_fits(facts))
    charts = figures(page, "federated")
    assert len(charts) == 6
    chart = charts[0]
    curves = {
        curve.find("title").text: curve.get("d") for curve in chart.iter("path") if curve.get("class") == "c"
    }
    assert set(curves) == {"original", "progressive, k = 3", "mondrian, k = 6"}
    assert [text.count("M") for text in curves.values()] == [1, 2, 1]
    crosses = [mark for mark in chart.iter("use") if mark.get("data-gap")]
    assert [cross.find("title").text.split("\n")[1][:8] for cross in crosses] == ["round 7:", "round 20"]
    assert "2 rounds have gaps." in chart[1].text
    assert chart[1].text.startswith("After 30 rounds progressive, k = 3 stands at 8")


def test_shading_reaches_from_the_least_to_the_greatest_seed() -> None:
    ((_, curves), *_) = curves_of(trainings(3)).items()
    values = [one.fit.rounds[0].accuracy for one in curves[0].trainings]
    assert curves[0].points("accuracy")[0] == pytest.approx((1, sum(values) / 2, min(values), max(values)))


def test_participation_counts_rounds_replies_and_reasons() -> None:
    table = participation(curves_of(trainings()))
    (line,) = [one for one in table.rows if one[1].startswith("mondrian") and "evenly" in one[0]]
    assert line[2:7] == ("60", "56", "6 / 10", "4", "12.0")
    assert line[7] == "6 of 10 clients replied; 8 are needed."
    assert needed(trainings()) == "At least 8 of 10 clients must reply in each round."


def test_a_training_that_was_given_up_says_why() -> None:
    stopped = replace(trainings(3)[0], gap="Too few clients answered.")
    assert participation(curves_of([stopped])).rows[0][7] == "Too few clients answered."


def test_clients_are_summed_up_and_listed_with_their_gaps() -> None:
    short, full = over_clients(trainings())
    (line,) = [one for one in short.rows if one[1].startswith("mondrian") and "evenly" in one[0]]
    assert told(line[2], "pt") == "25,7% (21,0…30,0)" and line[4] == "1 / 10"
    (client,) = [one for one in full.rows if one[:2] == line[:2] and one[2] == "client 4"]
    assert client[3:] == ("104", "20", "–", "–", "It has fewer rows than k.")


def test_a_federation_that_came_to_nothing_is_not_called_untested(facts) -> None:
    asked = replace(facts, recipe=replace(facts.recipe, federated=FederatedAxes()))
    assert "none of the trainings across clients came to anything" in to_html(asked)
    assert "Not tested: this study did not train across clients." in to_html(facts)


def test_the_last_round_is_told_with_its_interval_and_the_split_in_words(facts) -> None:
    numbers = dict.fromkeys(("accuracy", "auc", "log_loss", "drop_accuracy"), Interval(0.5, 0.4, 0.6))
    setting = ReleaseSetting("mondrian", 6)
    row = StudyRow(setting=setting, model="logistic", split="dirichlet(0.5)", numbers=numbers)
    counts = dict.fromkeys(("rounds", "applied", "missed", "clients", "sat_out"), 0)
    across = AcrossClients(row=row, **counts, ncp=None, linkage=None)
    page = to_html(replace(with_fits(facts), across_clients=(across,)), "pt")
    assert "logistic, clientes desiguais (Dirichlet, alfa 0,5)</td><td>mondrian, k\u00a0=\u00a06</td>" in page
    assert "50,0% (40,0\u2060…\u206060,0)" in page and "50,0 pontos (40,0\u2060…\u206060,0)" in page
