"""The report's texts in Portuguese (Brazil). Same keys and placeholders as `words_en`."""

PORTUGUESE = {
    # names and small words
    "and": "e",
    "before": "antes (original)",
    "after": "depois (publicada)",
    "rows": "linhas",
    "classes": "grupos",
    "column": "coluna",
    "loss": "perda de detalhe",
    "overall": "todas as colunas",
    "blank": "(em branco)",
    "other_values": "(todos os outros valores)",
    "yes": "sim",
    "no": "não",
    "holds": "cumprida",
    "broken": "violada",
    "each_sensitive_column": "cada coluna sensível",
    "contents": "Conteúdo",
    # top of the page
    "title": "Relatório da publicação",
    "subtitle": "{name}: {rows} linhas, {columns} colunas. Método: {method}.",
    "label_good": "A promessa é cumprida",
    "label_caution": "Decida com cuidado",
    "label_warning": "Não publique",
    "headline_people": "Quem conhece os quase-identificadores de uma pessoa ainda encontra na tabela publicada pelo menos "
    "{found} pessoas que poderiam ser ela.",
    "headline_rows": "Quem conhece os quase-identificadores de uma pessoa ainda encontra na tabela publicada pelo menos "
    "{found} linhas que poderiam ser dela.",
    "headline_holds": "Todas as promessas pedidas são cumpridas nos valores publicados.",
    "headline_measured": "Este método não promete tamanho de grupo: o menor grupo de linhas iguais na tabela publicada tem "
    "{smallest} linha(s).",
    "headline_paper": "Esta tabela repete um experimento publicado, para comparação, e não dá proteção prometida a "
    "ninguém.",
    "headline_doors": "Antes de publicar, leia “Portas laterais”: outras colunas publicadas podem anular a promessa "
    "({columns}).",
    "headline_behind": "Menor grupo {smallest}; {behind} para quem também lê {columns}.",
    "cost_sentence": "Isso custa {loss} do detalhe dos quase-identificadores, e {rows} linha(s) ficaram de fora.",
    "notice_title": "Somente para o responsável pelos dados.",
    "notice": "Este relatório mostra distribuições e números de linha da tabela original. Não o publique junto com a "
    "tabela.",
    "key_smallest": "Menor grupo (linhas)",
    "key_risk": "Maior chance de apontar uma pessoa",
    "key_loss": "Perda de detalhe",
    "key_suppressed": "Linhas deixadas de fora",
    "footer": "Feito com velado. {file} tem SHA-256 {sha256}.",
    # promise
    "promise_title": "O que foi prometido e verificado",
    "guaranteed": "garantida",
    "guaranteed_means": "A promessa é garantida: os valores publicados foram agrupados de novo, como um estranho os veria, "
    "e cada grupo foi verificado. Se um só grupo falhasse, nada teria sido gravado.",
    "measured": "medida",
    "measured_means": "A promessa é medida: ataques foram feitos contra a tabela publicada e este relatório diz o que "
    "encontraram. Outro ataque pode encontrar mais.",
    "as_in_the_paper": "como no artigo",
    "as_in_the_paper_means": "O resultado é como no artigo: repete o que os autores calcularam, para a ciência. Não é uma "
    "garantia.",
    "guarantee": "promessa",
    "needed": "exigido em cada grupo",
    "weakest_group": "encontrado no grupo mais fraco",
    "verdict": "veredito",
    "promise_table": "Promessas, verificadas nos valores publicados",
    "promise_how": "Um grupo são todas as linhas que mostram os mesmos valores nos quase-identificadores: {columns}.",
    "promise_none": "Nenhuma garantia foi pedida. O menor grupo da tabela publicada tem {smallest} linha(s).",
    "verdict_k_people": "k-anonimato com k = {k}, contado em pessoas: o menor grupo tem {found} pessoas diferentes.",
    "verdict_k_rows": "k-anonimato com k = {k}, contado em linhas: o menor grupo tem {found} linhas.",
    "verdict_l": "l-diversidade com l = {l} em {column}: o grupo menos diverso tem {found} valores distintos.",
    "verdict_other": "{guarantee}: {needed} {unit} exigidos, o grupo mais fraco tem {found}.",
    "ends_true": "Os extremos dos intervalos de {columns} são valores verdadeiros de alguém do grupo; round = PASSO no "
    "esquema (--round-intervals COLUNA=PASSO) os esconde.",
    "ends_rounded": "Os extremos dos intervalos são múltiplos de um passo declarado ({columns}), movidos para fora: não são "
    "lidos de linhas individuais.",
    "ends_step": "{step} em {column}",
    # risk
    "risk_title": "Risco antes e depois",
    "risk_intro": "O risco é a chance de um atacante que conhece os quase-identificadores apontar o alvo certo.",
    "risk_unit": "Ele é contado em {unit}.",
    "risk_unique": "Na tabela original, {rows} linhas ({share}) são as únicas com sua combinação de quase-identificadores; "
    "na publicada, {after}.",
    "risk_unique_people": "De {of} pessoas, {people} podem ser distinguidas de todas as outras nela.",
    "risk_chart": "Chance de apontar o alvo certo, antes e depois",
    "risk_chart_described": "Para uma pessoa que se sabe estar na tabela, a maior chance cai de {before} para {after}.",
    "risk_chart_stays": "Para uma pessoa que se sabe estar na tabela, a maior chance continua em {after}.",
    "risk_chart_rises": "Para uma pessoa que se sabe estar na tabela, a maior chance sobe de {before} para {after}.",
    "risk_axis": "chance em por cento",
    "risk_table": "Chance de apontar o alvo certo",
    "attacker": "atacante",
    "prosecutor_highest": "promotor, pior caso",
    "prosecutor_mean": "promotor, média",
    "journalist_highest": "jornalista, pior caso",
    "marketer": "atacante em massa (marketer), parcela esperada",
    "risk_above": "Parcela de {unit} cujo risco (promotor) está acima de um limiar",
    "risk_threshold": "risco acima de",
    "risk_attackers": "O promotor sabe que a pessoa está na tabela. O jornalista não sabe. O atacante em massa "
    "(marketer) quer ligar o maior número possível e aceita erros.",
    "risk_no_population": "Não foi dada uma tabela da população; por isso o risco do jornalista é tomado como o do "
    "promotor.",
    "linkage_found": "Ligação de registros: ligar cada registro ao mais próximo acerta a linha em {correct} de {rows} "
    "linhas ({share}).",
    "linkage_rule": "Direção: {direction}. Empates: {ties}.",
    "linkage_one_attack": "Este é um ataque entre outros, no qual uma faixa publicada vale pelo seu meio. Não é um limite "
    "para o que outros ataques podem encontrar.",
    "linkage_skipped": "A ligação de registros não foi medida. {reason}",
    "released_to_original": "da tabela publicada para a original",
    "original_to_released": "da tabela original para a publicada",
    "ties_expected": "entre registros igualmente próximos, cada um conta com sua parte (1 / número de empates)",
    "ties_first": "conta o primeiro dos registros igualmente próximos",
    "ties_any": "conta como acerto se o registro certo está entre os igualmente próximos",
    # guesses of sensitive values
    "guesses_title": "Adivinhar valores sensíveis",
    "guesses_none": "Nenhuma coluna sensível é publicada; não há o que adivinhar.",
    "guesses_intro": "Não é preciso apontar uma pessoa para saber algo sobre ela: o que é comum em um grupo pode ser "
    "adivinhado. O atacante conhece os quase-identificadores e diz o valor mais comum no grupo da pessoa.",
    "guesses_table": "Com que frequência se acerta um valor sensível",
    "sensitive_column": "coluna sensível",
    "guessed_from_release": "pela publicação",
    "guessed_interval": "intervalo de 95%",
    "guessed_blindly": "só pela tabela inteira",
    "shared_value": "linhas em grupos com um único valor",
    "guesses_better": "A publicação ajuda a adivinhar {columns}: a diferença é maior que o acaso.",
    "guesses_no_better": "Com a publicação nada se adivinha melhor do que dizendo o valor mais comum da tabela inteira, até "
    "onde o acaso permite afirmar.",
    "guesses_how": "A linha adivinhada não conta em seu próprio grupo.",
    # partial knowledge
    "partial_title": "Conhecer só algumas colunas",
    "partial_intro": "Foram testados todos os {subsets} conjuntos de até {largest} quase-identificadores. Na tabela original, "
    "{before} deles isolam pelo menos uma linha; na publicada, {after}.",
    "partial_table": "Os conjuntos de colunas que mais expõem na tabela publicada",
    "known_columns": "colunas conhecidas",
    "unique_before": "linhas únicas antes",
    "unique_after": "linhas únicas depois",
    "smallest_before": "menor grupo antes",
    "smallest_after": "menor grupo depois",
    "partial_skipped": "Há conjuntos de colunas demais para testar todos em uma tabela deste tamanho.",
    # loss
    "loss_title": "O que custou",
    "loss_intro": "Em média, {loss} do que os quase-identificadores poderiam dizer não é mais dito (0% = tudo como antes, "
    "100% = nada restou).",
    "loss_variant": "Medida: penalidade de certeza normalizada (NCP), variante {variant}.",
    "variant_leaves_1": "“leaves-1” (largura do intervalo / largura do domínio para números; (folhas cobertas - 1) / "
    "(folhas - 1) para categorias; uma linha deixada de fora conta 100%)",
    "bound_at_most": "No máximo {above}% acima do melhor possível para esta tabela.",
    "bound_reached": "Este é o melhor possível para esta tabela.",
    "bound_means": "Provou-se por cálculo que nenhuma publicação desta tabela em grupos de pelo menos este tamanho pode perder "
    "menos de {bound}, seja qual for o método. O melhor possível pode estar acima desse limite; a diferença verdadeira "
    "pode ser menor.",
    "bound_large": "não calculado para mais de {rows} linhas",
    "loss_chart": "Perda de detalhe em cada quase-identificador",
    "loss_chart_described": "A coluna que mais perde é {column}, com {loss}.",
    "loss_axis": "perda em por cento do detalhe da coluna",
    "loss_table": "Perda e células falsas em cada quase-identificador",
    "false_cells": "células falsas",
    "false_none": "Nenhuma célula publicada é falsa: cada uma cobre o valor verdadeiro de sua linha.",
    "false_some": "{cells} células publicadas ({share}) não cobrem o valor verdadeiro de sua linha: o método publica "
    "substitutos. Diga isso onde quer que a tabela seja usada.",
    "false_unknown": "As células falsas não foram contadas: depois das operações nas colunas, os textos publicados não podem "
    "ser comparados com os valores originais.",
    # why
    "why_title": "Por que este resultado",
    "why_nothing": "Nada se perdeu: as linhas já eram parecidas o bastante.",
    "why_columns": "Estas colunas carregam a maior parte da perda: {columns}.",
    "why_rows": "O 1% mais caro das linhas carrega {one} da perda; os 5% mais caros carregam {five}.",
    "why_even": "A perda está bem distribuída: não são poucas linhas que a forçam, e deixar algumas de fora traria pouco "
    "ganho.",
    "why_outliers": "Poucas linhas incomuns forçam grande parte dela: permitir alguma supressão pode compensar.",
    "why_rows_table": "As linhas publicadas mais caras (a primeira linha de dados é a linha 1)",
    "row_number": "linha",
    "dearest_column": "coluna(s) que mais lhe custam",
    "what_if_table": "O que outro k ou outra supressão mudaria (* = esta publicação)",
    "what_if_note": "O mesmo método foi executado de novo mudando só esse ajuste. Nada dessas execuções é publicado.",
    "what_if_failed": "k = {k} com supressão de até {suppression} não é possível: {why}",
    "what_if_large": "A tabela é grande; por isso o método não foi executado de novo com outros ajustes.",
    "what_if_no_k": "O método não promete k; por isso não há outro k com que comparar.",
    "other_methods": "Este relatório trata de um só método. Quanto os outros métodos custam, com a mesma promessa e na mesma "
    "tabela, é mostrado por este comando, que nada grava:",
    "suppression_limit": "supressão permitida",
    "suppressed_rows": "linhas de fora",
    "smallest_class": "menor grupo",
    # groups
    "classes_title": "Tamanho dos grupos",
    "classes_intro": "{classes} grupos: o menor tem {smallest} linhas, a mediana é {median}, a média {mean}, o maior tem "
    "{largest}.",
    "classes_chart": "Linhas pelo tamanho de seu grupo",
    "classes_axis": "número de linhas, por tamanho do grupo",
    # distributions
    "distributions_title": "Distribuições antes e depois",
    "distributions_intro": "Como a tabela publicada mostra cada quase-identificador. Uma faixa publicada é espalhada por "
    "igual sobre os valores que cobre, como faria um leitor que nada mais sabe.",
    "distribution_of": "Distribuição de {column}",
    "distribution_described": "Parcela de linhas por valor de {column}, original ao lado da publicada; {moved} das linhas "
    "diferem.",
    "distribution_axis": "parcela das linhas em por cento",
    "distribution_moved": "Em {column}, {moved} das linhas teriam de mudar de valor para se voltar à distribuição original "
    "(variação total).",
    "grouped_month": "O gráfico mostra {column} por mês, não por dia.",
    "grouped_year": "O gráfico mostra {column} por ano, não por dia.",
    "grouped_decade": "O gráfico mostra {column} por década, não por dia.",
    "grouped_level": "{column} tem muitos valores: o gráfico os mostra em um nível mais amplo de sua taxonomia.",
    # blanks
    "blanks_title": "Duas leituras dos brancos",
    "blanks_intro": "Um branco ou * pode ser lido como um valor próprio ou como algo que combina com tudo. A promessa é "
    "verificada na primeira leitura, a mais rigorosa.",
    "blanks_table": "Tamanho dos grupos nas duas leituras",
    "reading": "leitura",
    "blank_own": "um branco é um valor próprio",
    "blank_anything": "um branco combina com qualquer valor",
    "mean_class": "grupo médio",
    # side doors
    "doors_title": "Portas laterais",
    "doors_none": "Não se encontrou outra coluna publicada que entregue um quase-identificador.",
    "doors_intro": "Estas colunas são publicadas, mas não são quase-identificadores. Um atacante que também as conheça "
    "enfrenta grupos menores que os prometidos.",
    "doors_table": "Quanto cada coluna abre a promessa",
    "reveals": "entrega",
    "guessed_with": "acerto com ela",
    "guessed_without": "sem ela",
    "smallest_with_column": "menor grupo se também for conhecida",
    "doors_fix": "Se pessoas de fora podem conhecer tal coluna, torne-a quase-identificador ou não a publique "
    '(publish = false). Se não, assine com side_door = "accept".',
    "door_copy": "{column} repete {reveals} um a um.",
    "door_original": "{column} fica dentro do valor publicado de {reveals} em {share} das linhas, por acaso em "
    "{chance}: parece ser o seu original.",
    "door_near_copy": "{column} quase repete {reveals}: lê-la exclui cerca de {share} dos outros valores.",
    "door_order": "{column} fica, por uma regra que só sobe ou só desce, dentro do valor publicado de {reveals} em "
    "{share} das linhas, por acaso em {chance}.",
    "door_part": "{column} tem o próprio valor de {reveals} em {share} das linhas sem o seu valor mais comum, "
    "por acaso em {chance}.",
    "door_narrows": "{column} estreita {reveals}: lê-la exclui cerca de {share} dos outros valores.",
    "door_rows": "A ordem das linhas segue {reveals}: linhas vizinhas mostram o mesmo valor em {share} dos casos, "
    "por acaso em {chance}.",
    "door_unseen": "{pairs} pares de colunas publicadas não foram examinados juntos: são demais.",
    "door_functional": "Cada valor de {column} acompanha um único valor de {reveals}.",
    "door_near": "{column} muitas vezes entrega {reveals}: acerta-se em {share} das linhas.",
    "door_unique": "{column} tem um valor que ninguém mais tem em {rows} linhas: pode ser comparada com outro arquivo.",
    "door_accepted": "(Assinada no esquema.)",
    # suppression and warnings
    "suppressed_title": "Linhas deixadas de fora e avisos",
    "suppressed_none": "Nenhuma linha ficou de fora.",
    "suppressed_some": "{rows} linhas ({share}) ficaram de fora; o limite era {limit}.",
    "suppressed_numbers": "Seus números (no máximo 20 são mostrados): {numbers}.",
    "suppressed_bias": "São linhas incomuns; por isso a tabela publicada tem menos pessoas incomuns que a original.",
    "warnings_none": "Não há avisos.",
    "formulas": "{cells} células começam como fórmula de planilha e foram mantidas: um programa de planilhas pode "
    "executá-las.",
    # the public page, and what each column is
    "headline_altered": "Os valores de {columns} foram alterados ao acaso antes de agrupados: os grupos têm o tamanho "
    "prometido, mas quem sabe os valores verdadeiros não fica necessariamente com um deles.",
    "operations_done": "Antes de agrupar, colunas foram mudadas: {operations}.",
    "public_title": "Sobre esta tabela",
    "public_subtitle": "{rows} linhas, {columns} colunas. Método: {method}.",
    "public_notice_title": "Esta página pode sair com a tabela.",
    "public_notice": "Ela diz o que foi prometido sobre {file} e quanto isso custou, e nada mais do original.",
    "columns_title": "O que é cada coluna",
    "columns_intro": "Colunas que não estão na lista não foram publicadas.",
    "columns_table": "Colunas publicadas",
    "column_role": "o que é",
    "role_quasi": "quase-identificador, menos detalhado onde foi preciso",
    "role_sensitive": "sensível, publicada como é",
    "role_other": "publicada como é",
    "signed_intro": "Estas colunas parecem identificadores. O responsável pela tabela assinou a publicação delas:",
    "signed_table": "Colunas assinadas",
    "keyed_digest": "impressão sob a chave do responsável",
    "reason": "motivo",
    # limits
    "limits_title": "O que isto não promete",
    "limits_intro": "Nenhuma publicação é sem risco. Esta não protege contra o seguinte.",
    "limit_quasi": "Quem sabe mais que os quase-identificadores ({columns}). Quais colunas o são foi escolha do responsável pela tabela.",
    "limit_shared": "Descobrir o que todos os membros de um grupo têm em comum: se todos têm o mesmo diagnóstico, ele é "
    "conhecido (a l-diversidade trataria disso).",
    "limit_skew": "Adivinhar um valor sensível melhor que antes porque ele é frequente em um grupo.",
    "limit_rows": "Uma pessoa com várias linhas: a promessa conta linhas; um grupo pode ter menos pessoas que linhas.",
    "limit_twice": "Combinar esta publicação com outra das mesmas pessoas, feita antes, depois ou por outros.",
    "limit_other": "O que está em colunas publicadas como são: texto livre, datas, valores exatos.",
    "limit_minimality": "Conhecer o método (minimalidade): os grupos foram escolhidos à vista dos valores sensíveis; quem "
    "conhece o método pode inferir mais do que a promessa diz.",
    "limit_membership": "Descobrir que alguém está na tabela.",
    "limit_law": "Cumprir uma lei: se uma tabela conta como anônima é decisão de pessoas, para a qual este relatório é "
    "evidência.",
    # how to repeat
    "repeat_title": "Como repetir",
    "repeat_intro": "recipe.toml guarda todos os ajustes. No mesmo arquivo, dá a mesma tabela byte a byte; em outro arquivo "
    "da mesma forma, tudo é escolhido e verificado de novo.",
    "repeat_table": "Ajustes desta execução",
    "setting": "ajuste",
    "value": "valor",
    "method": "método",
    "source": "fonte",
    "parameters": "parâmetros",
    "seed": "semente",
    "input_file": "entrada",
    "output_file": "saída",
    "operation": "operação feita antes",
    # what methods note about a run
    "note_groups": "grupos formados",
    "note_bins": "intervalos por coluna numérica",
    "note_intervals": "intervalos por coluna",
    "note_levels": "nível de generalização por coluna",
    "note_level_of": "{level} de {height}",
    "note_loss_measure": "perda minimizada",
    "note_loss_value": "valor dessa perda",
    "note_level_combinations": "combinações de níveis",
    "note_visited": "combinações examinadas",
    "note_proven_optimal": "provada a melhor combinação",
    "note_generalized_groups": "grupos após a generalização",
    "note_initial_classes": "grupos grandes o bastante desde o início",
    "note_new_clusters": "grupos formados por agrupamento",
    "note_outlier_groups": "grupos tratados como atípicos",
    "note_cut": "corte",
    "note_categories": "tratamento das categorias",
    "note_iterations": "iterações",
    "note_evaluations": "soluções avaliadas",
    "note_loss_of_start": "perda do melhor início",
    "note_loss_found": "perda encontrada pela busca",
    "note_cut_by_mondrian": "linhas deixadas ao Mondrian",
    "note_lower_bound": "limite inferior provado da perda",
    "note_lower_bound_reason": "sem limite inferior da perda",
    "note_above_best": "acima do melhor possível, no máximo",
}
