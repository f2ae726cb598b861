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
    "query_interval": (
        "Each interval holds the exact value over {rows}, with numbers moved to their declared bounds and steps, "
        "with a chance of at least {confidence}; it is about the noise alone."
    ),
    "query_every_row": "every row",
    "query_rows_that_count": "the rows that count (at most {rows} with one value of '{column}')",
    "query_bound": "{name} is the declared bound of '{column}'; no rows were looked at.",
    "query_extreme": "{name}: {asked} is answered as the {level} quantile.",
    "query_quantile": "{name}: the {level} quantile.",
    "query_rank": "It may miss the asked rank by {rows} rows, by no more with a chance of at least {confidence}.",
    "query_rank_best": (
        "It may miss the asked rank by {rows} rows more than the best of {candidates} candidates does, "
        "by no more with a chance of at least {confidence}."
    ),
    "query_implied": "At delta {delta} this answer alone implies an epsilon of {epsilon}, the whole budget one of {total}.",
    "query_tiny": "less than 0.000001",
    "query_value": "value",
    "query_low": "from",
    "query_high": "to",
    "query_name": "name",
    "query_rank_error": "may miss the rank by",
    "query_rank_rows": "{rows} rows",
    "query_need_rows": "rows",
    "query_need_rows with": "rows with '{column}'",
    "query_need_sum of": "sum of '{column}'",
    "query_need_centred sum of": "centred sum of '{column}'",
    "query_need_histogram of": "histogram of '{column}'",
    "query_need_quantile of": "{level} quantile of '{column}'",
    "query_price_rank": "Ranks are missed by no more than that with a chance of at least {confidence}.",
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
    "groups_signed_title": "Groups, signed by {name}",
    "groups_signed": (
        "{name} answers for them: {reason}. Write the column '{column}' into your table and declare group = true and "
        "max_rows = {rows} for it in the schema; only then does it protect."
    ),
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
    "query_interval": (
        "Cada intervalo contém o valor exato sobre {rows}, com os números levados aos limites e passos declarados, "
        "com chance de pelo menos {confidence}; trata só do ruído."
    ),
    "query_every_row": "todas as linhas",
    "query_rows_that_count": "as linhas que contam (no máximo {rows} com um mesmo valor de '{column}')",
    "query_bound": "{name} é o limite declarado de '{column}'; nenhuma linha foi consultada.",
    "query_extreme": "{name}: {asked} é respondido como o quantil de {level}.",
    "query_quantile": "{name}: o quantil de {level}.",
    "query_rank": "Pode errar o posto pedido em {rows} linhas, não mais com chance de pelo menos {confidence}.",
    "query_rank_best": (
        "Pode errar o posto pedido em {rows} linhas além do que erra o melhor de {candidates} candidatos, "
        "não mais com chance de pelo menos {confidence}."
    ),
    "query_implied": "Com delta {delta}, só esta resposta implica um épsilon de {epsilon}, e o orçamento inteiro um de {total}.",
    "query_tiny": "menos de 0,000001",
    "query_value": "valor",
    "query_low": "de",
    "query_high": "até",
    "query_name": "nome",
    "query_rank_error": "pode errar o posto em",
    "query_rank_rows": "{rows} linhas",
    "query_need_rows": "linhas",
    "query_need_rows with": "linhas com '{column}'",
    "query_need_sum of": "soma de '{column}'",
    "query_need_centred sum of": "soma centrada de '{column}'",
    "query_need_histogram of": "histograma de '{column}'",
    "query_need_quantile of": "quantil de {level} de '{column}'",
    "query_price_rank": "O posto não é errado em mais do que isso com chance de pelo menos {confidence}.",
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
    "groups_signed_title": "Grupos, assinados por {name}",
    "groups_signed": (
        "{name} responde por eles: {reason}. Escreva a coluna '{column}' na sua tabela e declare group = true e "
        "max_rows = {rows} para ela no esquema; só então ela protege."
    ),
    "groups_size": "linhas no grupo",
    "groups_count": "grupos",
    "groups_unsigned": (
        "Isto é uma sugestão. Se você responde por ela, escreva a coluna '{column}' na sua tabela e declare "
        "group = true e max_rows no esquema."
    ),
}
