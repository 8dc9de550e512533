"""Makes metrics of its own, as models written for Triton do; answers what its counter says."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        labels = {"model": args["model_name"], "version": args["model_version"]}
        self.family = pb_utils.MetricFamily(
            name="seen_total", description="What came\nin", kind=pb_utils.MetricFamily.COUNTER
        )
        self.seen = self.family.Metric(labels=labels)
        heights = pb_utils.MetricFamily(name="height", description="Heights", kind=pb_utils.MetricFamily.HISTOGRAM)
        self.heights = heights.Metric(labels=labels, buckets=[1.0, 10.0])
        last = pb_utils.MetricFamily(name="last", description="The last one", kind=pb_utils.MetricFamily.GAUGE)
        self.last = last.Metric(labels={"which": 'the "last"'})
        passing = pb_utils.MetricFamily(name="passing", description="Goes at once", kind=pb_utils.MetricFamily.GAUGE)
        del passing

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        x = float(pb_utils.get_input_tensor_by_name(request, "x").as_numpy()[0])
        if x < 0:
            self.seen.increment(x)
        if x > 1e6:
            pb_utils.MetricFamily(name="nv_inference_count", description="", kind="counter").Metric()
        self.seen.increment(x)
        self.heights.observe(x)
        self.last.set(x)
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array([self.seen.value()], np.float32))])
