"""What the words of an action's name say: it brings text in, or it can't be undone."""

import pytest

from events.risk.scoring.details import read


@pytest.mark.parametrize(
    ("name", "act"),
    [
        ("delete_file", "deletion"),
        ("gmail.trashMessage", "deletion"),
        ("drop_table", "deletion"),
        ("git_delete_repo", "deletion"),
        ("terminate-instances", "deletion"),
        ("update_password", "credential"),
        ("resetUserPassword", "credential"),
        ("create_access_token", "credential"),
        ("put_secret_value", "credential"),
        ("git_add_ssh_key", "key"),
        ("git_delete_ssh_key", "key"),
        ("createApiKey", "key"),
        ("upload_certificate", "key"),
        ("share_file", "permission"),
        ("grant_access", "permission"),
        ("git_invite_collaborators", "permission"),
        ("add_user_to_channel", "permission"),
        ("invite_user_to_slack", "permission"),
        ("set_permissions", "permission"),
        ("transfer_repo_ownership", "role"),
        ("assign_role", "role"),
        ("promote_to_admin", "role"),
        ("publish_page", "publishing"),
        ("make_repo_public", "publishing"),
        ("deploy_to_production", "publishing"),
        ("create_release", "publishing"),
    ],
)
def test_act_by_the_words_of_a_name(name: str, act: str) -> None:
    assert read({"tool": name}).act == act
    assert read({"tool": f"mcp__server__{name}", "args": {}}).act == act


@pytest.mark.parametrize(
    "name",
    [
        "get_linked_ssh_keys", "list_roles", "read_file", "send_email", "view_permissions", "search_secrets",
        "cart_remove_product", "clear_cart", "verify_otp", "login", "create_file", "update_user_info",
        "invite_to_meeting", "buy_shares", "token_counter",
        "press_key", "role_play", "check_password_strength",
    ],
)  # fmt: skip
def test_harmless_name_is_no_act(name: str) -> None:
    assert read({"tool": name}).act is None


@pytest.mark.parametrize(
    ("details", "act"),
    [
        ({"tool": "http_request", "method": "DELETE", "url": "https://a.example/users/5"}, "deletion"),
        ({"tool": "http_request", "method": "GET", "url": "https://a.example/users/5"}, None),
        ({"tool": "calendar", "action": "delete"}, "deletion"),
        ({"tool": "update", "resource": "user/password"}, "credential"),
        ({"tool": "create_record", "table": "api_keys"}, "key"),
        ({"tool": "update_record", "table": "orders"}, None),
        ({"tool": "send_email", "resource": "user/password"}, None),
    ],
)
def test_generic_tool_does_what_its_verb_and_resource_say(details: dict[str, str], act: str | None) -> None:
    assert read(details).act == act


@pytest.mark.parametrize(
    ("name", "brings"),
    [
        ("read_file", True),
        ("getReceivedEmails", True),
        ("browse_webpage", True),
        ("web.search", True),
        ("git_pull", True),
        ("list_updates", True),
        ("download_file_through_url", True),
        ("get_sent_emails", True),
        ("send_email", False),
        ("send_read_receipt", False),
        ("read_and_forward", False),
        ("open_issue", False),
        ("open_page", True),
        ("delete_file", False),
        ("pay", False),
    ],
)
def test_reading_by_the_words_of_a_name(name: str, brings: bool) -> None:
    assert read({"tool": name}).brings_text is brings
