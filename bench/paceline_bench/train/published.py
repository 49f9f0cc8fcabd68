"""Published numbers of the networks."""

# parameters, flops of a forward pass and picture: table 2 of A. Castelló and others, 2021.
PUBLISHED = {"alexnet": (62_378_344, 2_270_512_192), "resnet50": (25_636_712, 8_178_368_512),
             "vgg11": (132_863_336, 15_218_180_096), "resnet110": (1_747_898, 506_832_128)}
PUBLISHED_MB = {"alexnet": 256, "googlenet": 51}  # of parameters: table 2 of Wang and others
