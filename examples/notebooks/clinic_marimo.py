"""From a table to what may leave, in SQL cells of marimo: `marimo edit examples/notebooks/clinic_marimo.py`."""

import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo

    import duckanon

    clinic = duckanon.connect()
    return clinic, mo


@app.cell
def _(clinic, mo):
    made = mo.sql(
        """
        CREATE TABLE patients AS
        SELECT 'P' || i AS patient_id,
               CASE WHEN md5_number_lower('sex' || i) % 2 = 0 THEN 'F' ELSE 'M' END AS sex,
               20 + (md5_number_lower('age' || i) % 70)::INTEGER AS age,
               (10000 + md5_number_lower('zip' || i) % 40)::VARCHAR AS zip,
               list_extract(['flu', 'asthma', 'cold'], 1 + (md5_number_lower('ill' || i) % 3)::INTEGER) AS diagnosis
        FROM range(2000) AS people(i)
        """,
        engine=clinic,
    )
    return (made,)


@app.cell
def _(clinic, made, mo):
    made
    roles = mo.sql("SELECT column_name, role, why FROM anon.assess('patients')", engine=clinic)
    return (roles,)


@app.cell
def _(clinic, made, mo):
    made
    released = mo.sql(
        """
        CREATE TABLE released AS
        SELECT * FROM anon.generalize('patients', ['sex', 'age', 'zip'], k := 10, person := 'patient_id',
                                      keep := ['diagnosis'])
        """,
        engine=clinic,
    )
    return (released,)


@app.cell
def _(clinic, mo, released):
    released
    crowds = mo.sql("SELECT k, classes, rows FROM anon.k_anonymity('released', ['sex', 'age', 'zip'])", engine=clinic)
    return (crowds,)


@app.cell
def _(clinic, mo, released):
    released
    risks = mo.sql(
        """
        SELECT attacker, maximum_risk, rows_at_risk
        FROM anon.containment_risk('patients', 'released', ['sex', 'age', 'zip'])
        """,
        engine=clinic,
    )
    return (risks,)


if __name__ == "__main__":
    app.run()
