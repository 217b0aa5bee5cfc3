"""The cases of the benchmark for inspect_ai."""

import json

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, solver


def samples():
    with open("cases.json", encoding="utf-8") as file:
        return [Sample(**case) for case in json.load(file)]


@solver
def say_it_again():
    async def solve(state, generate):
        state.output.completion = state.input_text
        return state

    return solve


@task
def echo():
    return Task(dataset=samples(), solver=say_it_again(), scorer=includes())


@task
def chat():
    return Task(dataset=samples(), solver=generate(), scorer=includes())
