"""An attestation as a PDF of one page: long values are cut there, and whole in the JSON."""

from datetime import datetime
from typing import Final

from agents.risk import BANDS
from compliance.core.json_values import Json
from reports.pdf.drawing import draw
from reports.pdf.sections import DIGESTS, FINGERPRINT, KEYS, KEYS_OF_TEST, SIGNATURE

LONGEST: Final = 120
FIRST: Final = 2
NONE: Final = "not on record"


def render(document: Json, *, digest: str, fingerprint: str) -> bytes:
    """Return the page; `digest` is that of the JSON, `fingerprint` of the key that signs the manifest."""
    keys = KEYS if document["environment"] == "live" else KEYS_OF_TEST
    blocks = [
        {"kind": "note", "text": document["notice"]},
        {"kind": "facts", "rows": [(name, _cut(text)) for name, text in _facts(document).items()]},
        {
            "kind": "table",
            "head": ["AI Act", "Rows", "The newest"],
            "widths": [4, 0.8, 5],
            "rows": [
                [
                    f"{one['reference']} {one['title']}",
                    f"{one['count']:,}",
                    ", ".join(f"{row['kind'].replace('_', ' ')} {row['id']}" for row in one["rows"][:FIRST])
                    or NONE,
                ]
                for one in document["controls"]
            ],
        },
        {"kind": "note", "text": _cut("Lacking: " + ("; ".join(document["gaps"]) or NONE), 3 * LONGEST)},
        {"kind": "text", "text": f"Check the unpacked bundle with OpenSSL 3; keys are at {keys}:"},
        *({"kind": "command", "text": command} for command in (SIGNATURE, DIGESTS, FINGERPRINT)),
        {"kind": "note", "text": f"Fingerprint: {fingerprint}"},
    ]
    title = f"Attestation: {_cut(document['agent']['name'] or document['agent']['id'], 60)}"
    made_at = datetime.fromisoformat(document["generated_at"])
    return draw(blocks, title=title, subject=document["report_id"], digest=digest, made_at=made_at)


def _facts(document: Json) -> dict[str, str]:
    agent, risk, incidents = (document[name] for name in ("agent", "risk", "incidents"))
    certificate, review = document["certificate"], document["last_access_review"]
    permitted, bands, strikes = (
        document["scope"]["permitted_actions"],
        risk["events_by_band"],
        risk["strikes"],
    )
    stands = NONE
    if certificate is not None:
        stands = (
            f"{certificate['serial_number']}, {certificate['status'].replace('_', ' ')}, "
            f"issued {certificate['issued_at'][:10]}, ends {certificate['expires_at'][:10]}"
        )

    model = [_cut(agent[name], 60) for name in ("model", "version", "model_hash") if agent[name]]
    scope = NONE if permitted is None else ", ".join(permitted) or "nothing is permitted"
    newest = ", ".join(f"{row['reference']} ({row['cause']})" for row in incidents["newest"])
    return {
        "At": f"{document['at']}; made {document['generated_at']}, {document['report_id']}",
        "Tenant": f"{document['tenant']['name']} ({document['environment']})",
        "Agent": f"{agent['did']}, registered {agent['registered_at'][:10]}",
        "Status": agent["status"] or NONE,
        "Model": ", ".join(model) or NONE,
        "Certificate": stands,
        "Scope": scope,
        "Owner": _person(document["owner"]),
        "Backup owner": _person(document["backup_owner"]),
        "Risk": f"{risk['score']:.2f} ({risk['band']}) over {risk['days']} days",
        "Events": f"{' / '.join(f'{bands[name]:,}' for name in BANDS)} low / medium / high",
        "High-risk events": ", ".join(row["id"] for row in risk["high_risk_events"][:FIRST]) or NONE,
        "Strikes": f"{strikes['counting']} of {strikes['of']}; automatic stops: {risk['automatic_stops']:,}",
        "Access review": review["finished_at"][:10] if review else NONE,
        "Incidents": f"{incidents['count']:,}: {newest}" if newest else NONE,
    }


def _person(person: Json | None) -> str:
    return f"{person['name']} <{person['email']}>" if person else NONE


def _cut(text: str, most: int = LONGEST) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}\N{HORIZONTAL ELLIPSIS}"
