"""torch.distributed on tensors of CUDA devices, where there is one: several ranks may share it."""

import launched
import pytest
from length import each

pytestmark = pytest.mark.ranks

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA here: torch finds no device", allow_module_level=True)


@pytest.mark.parametrize("name", [*launched.names("torch_cuda_checks"), "end"])
@each("ranks", [1, 2, 3], [])
def test_cuda(name, ranks):
    launched.expect("torch_cuda_checks", name, ranks)
