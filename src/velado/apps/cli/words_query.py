"""What `velado query` and `velado groups` print, in English and Portuguese, under the same keys."""

from __future__ import annotations

EN = {
    "query_title": "Answer",
    "query_price_title": "What it would cost, without asking",
    "query_draw": "drawn",
    "query_mechanism": "noise",
    "query_sensitivity": "one unit moves it by",
    "query_scale": "scale",
    "query_charge": "cost",
    "query_promise_epsilon": "Promise ({type}): differential privacy with epsilon {cost} for {unit}.",
    "query_promise_rho": "Promise ({type}): zero-concentrated differential privacy with rho {cost} for {unit}.",
    "query_unit_record": "one record, if rows tell nothing of one another",
    "query_unit_group": "all rows with one value of '{column}' (at most {rows} count), however they depend on each other",
    "query_unit_dependence": "one record with its group by '{column}', up to the declared dependence {dependence}",
    "query_type_guaranteed": "guaranteed",
    "query_type_guaranteed-if": "guaranteed if the declared dependence holds",
    "query_cost": "Cost: {measure} {cost}. Left: {left} of {budget}.",
    "query_cost_stored": "Cost: nothing; asked before, these are the same numbers. Left: {left} of {budget}.",
    "query_interval": "Intervals hold the exact value with a chance of at least {confidence}; they are about the noise alone.",
    "query_receipt": "Ledger: {path}; receipt {receipt}",
    "query_ledger_made": "A ledger was made at {path} with a budget of {measure} {budget} for all questions about this file.",
    "query_ledger_used_up": (
        "No --budget was given, so it holds this one question and is used up. "
        "To allow more: velado ledger raise {path} --help"
    ),
    "query_budget_ignored": "--budget was not applied: the ledger exists already. Change its total with velado ledger raise.",
    "query_wrong_unit": (
        "The schema groups rows by '{column}', but the promise is about another unit: "
        "all rows of one '{column}' together are not covered."
    ),
    "query_written": "Written to {path}.",
    "query_price_total": "In all: {measure} {cost} of the {asked} asked for.",
    "query_price_free": "Nothing is drawn: the answer is made of declared bounds and costs nothing.",
    "paper_title": "As in the source: {approach}",
    "paper_value": "aggregate",
    "paper_answer": "answer",
    "paper_promise": (
        "Promise: none. The noise is scaled to a sensitivity computed from the private rows, so the answer and its scale "
        "tell of them. Reproduced for science; never for people's data."
    ),
    "groups_title": "Groups suggested (not signed off)",
    "groups_size": "rows in a group",
    "groups_count": "groups",
    "groups_unsigned": (
        "This is a suggestion. If you answer for it, write the column '{column}' into your table and declare "
        "group = true and max_rows in the schema."
    ),
}

PT = {
    "query_title": "Resposta",
    "query_price_title": "Quanto custaria, sem perguntar",
    "query_draw": "sorteado",
    "query_mechanism": "ruído",
    "query_sensitivity": "uma unidade o move em",
    "query_scale": "escala",
    "query_charge": "custo",
    "query_promise_epsilon": "Promessa ({type}): privacidade diferencial com épsilon {cost} para {unit}.",
    "query_promise_rho": "Promessa ({type}): privacidade diferencial concentrada (zCDP) com rô {cost} para {unit}.",
    "query_unit_record": "um registro, se as linhas nada dizem umas das outras",
    "query_unit_group": "todas as linhas com um mesmo valor de '{column}' (contam no máximo {rows}), como quer que dependam entre si",
    "query_unit_dependence": "um registro com seu grupo em '{column}', até a dependência declarada {dependence}",
    "query_type_guaranteed": "garantida",
    "query_type_guaranteed-if": "garantida se vale a dependência declarada",
    "query_cost": "Custo: {measure} {cost}. Restam: {left} de {budget}.",
    "query_cost_stored": "Custo: nenhum; já perguntado, são os mesmos números. Restam: {left} de {budget}.",
    "query_interval": "Os intervalos contêm o valor exato com chance de pelo menos {confidence}; tratam só do ruído.",
    "query_receipt": "Livro-razão: {path}; recibo {receipt}",
    "query_ledger_made": "Um livro-razão foi criado em {path} com orçamento de {measure} {budget} para todas as perguntas sobre este arquivo.",
    "query_ledger_used_up": (
        "Sem --budget, ele cobre só esta pergunta e está esgotado. Para permitir mais: velado ledger raise {path} --help"
    ),
    "query_budget_ignored": "--budget não foi aplicado: o livro-razão já existe. Mude o total com velado ledger raise.",
    "query_wrong_unit": (
        "O esquema agrupa as linhas por '{column}', mas a promessa é sobre outra unidade: "
        "todas as linhas de um mesmo '{column}' juntas não estão cobertas."
    ),
    "query_written": "Escrito em {path}.",
    "query_price_total": "Ao todo: {measure} {cost} dos {asked} pedidos.",
    "query_price_free": "Nada é sorteado: a resposta são limites declarados e não custa nada.",
    "paper_title": "Como na fonte: {approach}",
    "paper_value": "agregado",
    "paper_answer": "resposta",
    "paper_promise": (
        "Promessa: nenhuma. O ruído segue uma sensibilidade calculada das linhas privadas, de modo que a resposta e a escala "
        "falam delas. Reproduzido para a ciência; nunca para dados de pessoas."
    ),
    "groups_title": "Grupos sugeridos (sem assinatura)",
    "groups_size": "linhas no grupo",
    "groups_count": "grupos",
    "groups_unsigned": (
        "Isto é uma sugestão. Se você responde por ela, escreva a coluna '{column}' na sua tabela e declare "
        "group = true e max_rows no esquema."
    ),
}
