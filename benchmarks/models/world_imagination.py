"""Dreamer: a world model of categorical latents, which imagines frames, rewards and returns."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

ACTIONS = 6
STEPS = 16
STOCHASTIC = 16
CLASSES = 16
DETERMINISTIC = 128
HIDDEN = 128
DEPTH = 8
BINS = 41
UNIMIX = 0.01
LAMBDA = 0.95
FEATURES = STOCHASTIC * CLASSES + DETERMINISTIC


def symlog(x: Tensor) -> Tensor:
    return torch.sign(x) * torch.log(torch.abs(x) + 1.0)


def symexp(x: Tensor) -> Tensor:
    return torch.sign(x) * (torch.exp(torch.abs(x)) - 1.0)


class ChannelNorm(nn.LayerNorm):
    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        inputs = 3
        for i in range(4):
            outputs = DEPTH * 2**i
            layers += [
                nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False),
                ChannelNorm(outputs, eps=1e-3),
                nn.SiLU(),
            ]
            inputs = outputs
        self.layers = nn.Sequential(*layers)

    def forward(self, image: Tensor) -> Tensor:
        x: Tensor = self.layers(image)
        return x.reshape(x.shape[0], -1)


class Decoder(nn.Module):
    """From latents without a size, by kernels 5, 5, 6 and 6 at stride 2, to 64 by 64."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(FEATURES, 32 * DEPTH)
        self.layers = nn.Sequential(
            nn.ConvTranspose2d(32 * DEPTH, 4 * DEPTH, 5, stride=2),
            nn.ELU(inplace=True),
            nn.ConvTranspose2d(4 * DEPTH, 2 * DEPTH, 5, stride=2),
            nn.ELU(inplace=True),
            nn.ConvTranspose2d(2 * DEPTH, DEPTH, 6, stride=2),
            nn.ELU(inplace=True),
            nn.ConvTranspose2d(DEPTH, 3, 6, stride=2),
        )

    def forward(self, features: Tensor) -> Tensor:
        x = self.linear(features)
        x = x.reshape(-1, 32 * DEPTH, 1, 1)
        x = self.layers(x)
        mean: Tensor = x.reshape(features.shape[:-1] + x.shape[1:])
        return mean + 0.5


class RSSM(nn.Module):
    def __init__(self, embedded: int) -> None:
        super().__init__()
        latents = STOCHASTIC * CLASSES
        self.img_in = nn.Sequential(
            nn.Linear(latents + ACTIONS, HIDDEN, bias=False),
            nn.LayerNorm(HIDDEN, eps=1e-3),
            nn.SiLU(),
        )
        self.cell = nn.GRUCell(HIDDEN, DETERMINISTIC)
        self.img_out = self.head(DETERMINISTIC)
        self.obs_out = self.head(DETERMINISTIC + embedded)
        self.initial_deter = nn.Parameter(torch.randn(DETERMINISTIC) * 0.5)

    def head(self, inputs: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Linear(inputs, HIDDEN, bias=False),
            nn.LayerNorm(HIDDEN, eps=1e-3),
            nn.SiLU(),
            nn.Linear(HIDDEN, STOCHASTIC * CLASSES),
        )

    def mode(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        logits = logits.reshape(*logits.shape[:-1], STOCHASTIC, CLASSES)
        probs = functional.softmax(logits, dim=-1)
        probs = probs * (1.0 - UNIMIX) + UNIMIX / CLASSES
        one_hot = functional.one_hot(torch.argmax(probs, dim=-1), CLASSES)
        one_hot = one_hot.detach() + probs - probs.detach()
        return one_hot.flatten(-2), probs.log()

    def initial(self, batch: int) -> tuple[Tensor, Tensor]:
        deter = torch.tanh(self.initial_deter).repeat(batch, 1)
        stoch, _ = self.mode(self.img_out(deter))
        return deter, stoch

    def obs_step(self, embed: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        deter, stoch = self.initial(embed.shape[0])
        deter, stoch, prior = self.img_step(deter, stoch, action)
        stoch, post = self.mode(self.obs_out(torch.cat([deter, embed], -1)))
        kl = (post.exp() * (post - prior)).sum(-1).sum(-1)
        return deter, stoch, torch.clip(kl, min=1.0)

    def img_step(
        self, deter: Tensor, stoch: Tensor, action: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        # Actions beyond 1 keep their direction alone.
        action = action * (1.0 / torch.clip(torch.abs(action), min=1.0)).detach()
        deter = self.cell(self.img_in(torch.cat([stoch, action], -1)), deter)
        stoch, prior = self.mode(self.img_out(deter))
        return deter, stoch, prior


class TwoHot(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, BINS))
        self.buckets: Tensor
        self.register_buffer("buckets", torch.linspace(-3.0, 3.0, steps=BINS))

    def forward(self, features: Tensor) -> Tensor:
        probs = torch.softmax(self.layers(features) * 12, dim=-1)
        return symexp(torch.sum(probs * self.buckets, dim=-1, keepdim=True))


class WorldModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = Encoder()
        self.dynamics = RSSM(DEPTH * 8 * 4 * 4)
        self.decoder = Decoder()
        self.reward, self.value = TwoHot(), TwoHot()
        self.cont = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, 1))

    def forward(self, image: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        swap = actions.permute(1, 0, 2)
        deter, stoch, kl = self.dynamics.obs_step(self.encoder(image), swap[0])
        feats = [torch.cat([stoch, deter], -1)]
        for action in swap[1:]:
            deter, stoch, _ = self.dynamics.img_step(deter, stoch, symlog(action))
            feats.append(torch.cat([stoch, deter], -1))
        feat = torch.stack(feats, dim=0)
        video = self.decoder(feat).permute(1, 0, 2, 3, 4)

        reward, value = self.reward(feat), self.value(feat)
        discount = 0.997 * torch.sigmoid(self.cont(feat))
        following = torch.cat([value[1:-1], value[-1:]], 0)
        inputs = reward[1:] + discount[1:] * following * (1 - LAMBDA)
        last = value[-1]
        returns = []
        for index in reversed(range(STEPS - 1)):
            last = inputs[index] + discount[1:][index] * LAMBDA * last
            returns.append(last)
        target = torch.stack(list(reversed(returns)), dim=1).squeeze(-1)
        return video.contiguous(), target, kl


def build() -> nn.Module:
    torch.manual_seed(0)
    model = WorldModel()
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.ConvTranspose2d):
                module.weight.mul_(2.0)
    return model.eval()
