"""What `velado party` prints, in English and Portuguese, under the same keys."""

from __future__ import annotations

EN = {
    "party_passphrase": "Passphrase of this party's keys",
    "party_made": "Keys of '{name}' made in {folder}; the private ones open with the passphrase only.",
    "party_paste": "Put this entry into the job file, the same at all parties ({file} holds it too):",
    "party_until": "The certificate is valid for {days} days.",
    "party_listening": "{name} ({role}) listens on port {port}; job {digest}.",
    "party_resumed": "{name} ({role}) goes on from its journal, on port {port}; job {digest}.",
    "party_processed": "Taken: {kind} from {peer}.",
    "party_left": "The job goes on without {peer}: nothing came from it for too long.",
    "party_finished": "This party's part is done.",
    "party_failed": "The job ended without a result.",
    "party_waiting": "Still waiting for an answer from: {peers}; until the job's time is up, or until Ctrl-C.",
    "party_untold": "Not told: {peers}.",
    "party_stopped": "Stopped. Run the same command again to go on from the journal.",
    "party_written": "Written in {folder}: {files}",
    "party_coefficients": "Coefficients",
    "party_coefficient": "coefficient",
    "party_error": "standard error",
    "party_column": "column",
    "party_no_coefficients": "This party does not learn the coefficients.",
    "party_job": "Job '{name}': {target} from {features} columns, protocol {protocol}, lambda {ridge}, {bits} fractional bits, key {key_bits} bits",
    "party_digest": "Digest: {digest}. Compare it with the other parties before you start.",
    "party_parties": "Parties",
    "party_name": "name",
    "party_role": "role",
    "party_address": "address",
    "party_certificate": "certificate (SHA-256)",
    "party_learned": "What each role sees and can infer",
    "party_saw": "sees",
    "party_infers": "can infer",
}

PT = {
    "party_passphrase": "Frase secreta das chaves desta parte",
    "party_made": "Chaves de '{name}' feitas em {folder}; as privadas só abrem com a frase secreta.",
    "party_paste": "Ponha esta entrada no arquivo do trabalho, igual em todas as partes ({file} também a contém):",
    "party_until": "O certificado vale por {days} dias.",
    "party_listening": "{name} ({role}) escuta na porta {port}; trabalho {digest}.",
    "party_resumed": "{name} ({role}) continua do seu diário, na porta {port}; trabalho {digest}.",
    "party_processed": "Recebido: {kind} de {peer}.",
    "party_left": "O trabalho continua sem {peer}: nada veio de lá por tempo demais.",
    "party_finished": "A participação desta parte está concluída.",
    "party_failed": "O trabalho terminou sem resultado.",
    "party_waiting": "Ainda à espera de resposta de: {peers}; até o fim do prazo do trabalho, ou até Ctrl-C.",
    "party_untold": "Não avisados: {peers}.",
    "party_stopped": "Parado. Execute o mesmo comando para continuar a partir do diário.",
    "party_written": "Escrito em {folder}: {files}",
    "party_coefficients": "Coeficientes",
    "party_coefficient": "coeficiente",
    "party_error": "erro padrão",
    "party_column": "coluna",
    "party_no_coefficients": "Esta parte não fica sabendo os coeficientes.",
    "party_job": "Trabalho '{name}': {target} a partir de {features} colunas, protocolo {protocol}, lambda {ridge}, {bits} bits fracionários, chave de {key_bits} bits",
    "party_digest": "Resumo: {digest}. Compare-o com as outras partes antes de começar.",
    "party_parties": "Partes",
    "party_name": "nome",
    "party_role": "papel",
    "party_address": "endereço",
    "party_certificate": "certificado (SHA-256)",
    "party_learned": "O que cada papel vê e pode inferir",
    "party_saw": "vê",
    "party_infers": "pode inferir",
}


def tell(lang: str, key: str, **parts: object) -> str:
    """The text under *key* in the language *lang*, its places filled."""
    return {"en": EN, "pt": PT}[lang][key].format(**parts)
