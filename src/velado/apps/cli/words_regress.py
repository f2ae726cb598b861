"""What `velado regress` and `velado predict` print, in English and Portuguese, under the same keys."""

from __future__ import annotations

EN = {
    "regress_title": "Regression of '{target}' over the rows of {clients} clients, protocol {protocol}",
    "regress_coefficient": "coefficient",
    "regress_error": "standard error",
    "regress_promise": "Promise",
    "regress_learned": "What each party saw and can infer",
    "regress_party": "party",
    "regress_saw": "saw",
    "regress_infers": "can infer",
    "regress_cost": (
        "Cost: {seconds} s ({processor_seconds} s of processor time), all parties together; {messages_sent} messages, "
        "{bytes_sent} bytes."
    ),
    "regress_written": "Written: fit.json, learned.json and report.md in {path}",
    "regress_bounds_read": (
        "the bounds were read off the rows. Real parties must declare them: bounds that follow the rows tell "
        "their least and largest values."
    ),
    "regress_unsafe": "this protocol is not private. It repeats a published method; never use it with people's data.",
    "regress_simulated": "All parties ran in one process, which saw all rows: the promise is that of real parties.",
    "predict_written": "{rows} predictions of '{target}' in {path}",
}

PT = {
    "regress_title": "Regressão de '{target}' sobre as linhas de {clients} clientes, protocolo {protocol}",
    "regress_coefficient": "coeficiente",
    "regress_error": "erro padrão",
    "regress_promise": "Promessa",
    "regress_learned": "O que cada parte viu e pode inferir",
    "regress_party": "parte",
    "regress_saw": "viu",
    "regress_infers": "pode inferir",
    "regress_cost": (
        "Custo: {seconds} s ({processor_seconds} s de processador), todas as partes juntas; {messages_sent} mensagens, "
        "{bytes_sent} bytes."
    ),
    "regress_written": "Escritos: fit.json, learned.json e report.md em {path}",
    "regress_bounds_read": (
        "os limites foram lidos das linhas. Partes reais devem declará-los: limites que seguem as linhas contam "
        "o menor e o maior valor delas."
    ),
    "regress_unsafe": "este protocolo não é privado. Repete um método publicado; nunca o use com dados de pessoas.",
    "regress_simulated": "Todas as partes correram em um só processo, que viu todas as linhas: a promessa é a de partes reais.",
    "predict_written": "{rows} previsões de '{target}' em {path}",
}
