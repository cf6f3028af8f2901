"""Where the provider simulator answers in the place of each provider."""

from __future__ import annotations


def provider_urls(simulator: str) -> dict[str, str]:
    """The variables that make adapters call the simulator at this address. The addresses of WAHA and of signed
    webhooks are credentials of each account, so they are not here."""
    return {
        "OUTBOX_SIMULATED_URL": simulator,
        "OUTBOX_WHATSAPP_CLOUD_URL": f"{simulator}/whatsapp_cloud/v23.0",
        "OUTBOX_INTERAKT_URL": f"{simulator}/interakt/{{accountId}}",
    }
