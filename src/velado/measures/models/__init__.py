"""Model quality: what a model learns from a release, asked on true rows.

`encoder` turns releases and original rows into the same numbers, `model_registry` lists the models, `training` fits one and
lets it answer, `quality` scores the answers. scikit-learn and XGBoost are the extra `velado[ml]` and are imported
only when a model is built. The evaluation and the federated room both stand on this one.
"""
