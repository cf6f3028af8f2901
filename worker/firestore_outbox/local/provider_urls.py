"""Where the provider simulator answers in the place of each provider, of Google's services and of Stripe."""

from __future__ import annotations

LOCAL_KMS_KEY = "projects/demo-outbox/locations/global/keyRings/outbox/cryptoKeys/local"
"""The key that wraps accounts' keys on a laptop. The stand-in makes it when it is first named."""

LOCAL_STRIPE_SECRET = "whsec_local"
"""Signs the events of the stand-in for Stripe."""


def provider_urls(simulator: str) -> dict[str, str]:
    """The variables that make adapters call the simulator at this address. The addresses of WAHA and of signed
    webhooks are credentials of each account, so they are not here."""
    return {
        "OUTBOX_SIMULATED_URL": simulator,
        "OUTBOX_WHATSAPP_CLOUD_URL": f"{simulator}/whatsapp_cloud/v23.0",
        "OUTBOX_INTERAKT_URL": f"{simulator}/interakt/{{accountId}}",
        "OUTBOX_KMS_EMULATOR_HOST": simulator.partition("://")[2],
        "OUTBOX_KMS_KEY": LOCAL_KMS_KEY,
        "OUTBOX_STRIPE_EMULATOR_HOST": simulator.partition("://")[2],
        "OUTBOX_STRIPE_SECRET_KEY": "sk_test_local",
        "OUTBOX_STRIPE_WEBHOOK_SECRET": LOCAL_STRIPE_SECRET,
        "OUTBOX_NOTIFY_ANYWHERE": "1",
        "OUTBOX_FCM_EMULATOR_HOST": simulator.partition("://")[2],
        "OUTBOX_BILLING_RETURN_URL": f"{simulator}/stripe/done",
    }
