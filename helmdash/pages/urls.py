"""The addresses of the pages."""

from __future__ import annotations

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from helmdash.pages.parts.dot_segments import from_path, to_path
from helmdash.pages.views import (
    calls,
    care,
    compare,
    connect,
    conversations,
    finder,
    models,
    net_value,
    overview,
    queries,
    reds,
    saved_views,
    triage,
    trims,
    weekly,
)
from helmdash.pages.views.account import oidc, preferences, profile, sign_in
from helmdash.pages.views.budgets import (
    budget_edits,
    budget_lines,
    budget_rows,
    budgets,
    published,
    suggestions,
    whatif,
)
from helmdash.pages.views.plans import plans, preflight, try_fit, try_plan
from helmdash.pages.views.settings import (
    alerts,
    audit,
    care_settings,
    catalog,
    exports,
    gateway,
    members,
    recorder,
    settings,
    upstreams,
)


class AnyTextConverter(StringConverter):
    """An id that its client chose: slashes and line breaks are part of it, and so are segments of
    dots."""

    regex = r"[\s\S]+"

    def to_python(self, value: str) -> str:
        return from_path(value)

    def to_url(self, value: object) -> str:
        return to_path(str(value))


register_converter(AnyTextConverter, "any")

_sign_in = [
    path("login/", sign_in.SignInView.as_view(), name="login"),
    path("login/link/<str:uid>/<str:token>/", sign_in.link, name="sign-in-link"),
    path("login/oidc/", oidc.begin, name="oidc"),
    path("login/oidc/done/", oidc.done, name="oidc-done"),
    path("login/reset/", sign_in.ask_reset, name="ask-reset"),
    path("login/reset/<uidb64>/<token>/", sign_in.ResetView.as_view(), name="reset-password"),
    path("logout/", sign_in.sign_out, name="logout"),
]
_profile = [
    path("profile/", profile.profile_page, name="profile"),
    path("profile/look/", profile.save_look, name="save-look"),
    path("profile/password/", profile.change_password, name="change-password"),
    path("profile/sessions/end/", profile.end_sessions, name="end-sessions"),
]
_settings = [
    path("settings/", settings.settings_page, name="settings"),
    path("settings/keys/", settings.create_key, name="create-key"),
    path("settings/keys/revoke/", settings.revoke_key, name="revoke-key"),
    path("settings/members/", members.member_page, name="members"),
    path("settings/members/change/", members.change_members, name="change-members"),
    path("settings/audit/", audit.audit_page, name="audit"),
    path("settings/demo/", settings.demo_part, name="demo-part"),
    path("settings/demo/cancel/", settings.cancel_demo, name="cancel-demo"),
    path("settings/demo/load/", settings.load_demo, name="load-demo"),
    path("settings/demo/remove/", settings.remove_demo, name="remove-demo"),
]
_alerts = [
    path("settings/alerts/", alerts.alert_page, name="alerts"),
    path("settings/alerts/rule/", alerts.rule_page, name="alert-rule"),
    path("settings/alerts/rule/save/", alerts.save_rule, name="save-alert-rule"),
    path("settings/alerts/channel/", alerts.channel_page, name="alert-channel"),
    path("settings/alerts/channel/save/", alerts.save_channel, name="save-alert-channel"),
    path("alerts/seen/<str:token>/", alerts.acknowledge, name="acknowledge"),
]
# The conversation's name comes last: it may hold slashes.
_care = [
    path("settings/care/", care_settings.care_page, name="care-settings"),
    path("settings/care/save/", care_settings.save_care, name="save-care"),
    path("settings/care/preview/", care_settings.preview_care, name="preview-care"),
    path("care/reminders/<any:name>/", care.reminder_part, name="reminders"),
    path("care/change/<any:name>/", care.change_reminders, name="change-reminders"),
    path("care/clear/<any:name>/", care.clear_now, name="clear-now"),
    path("care/go-on/<any:name>/", care.go_on, name="go-on"),
    path("care/triage/<any:name>/", triage.mark_conversation, name="triage"),
    path("care/erase/<any:name>/", care.erase, name="erase-conversation"),
]
_gateway = [
    path("settings/gateway/", gateway.gateway_page, name="gateway"),
    path("settings/gateway/policy/", gateway.save_policy, name="gateway-policy"),
    path("settings/upstreams/", upstreams.upstream_list, name="upstreams"),
    path("settings/upstreams/test/", upstreams.test_named, name="test-named-upstream"),
    path("settings/upstreams/<int:pk>/test/", upstreams.test_stored, name="test-upstream"),
    path("settings/recorder/", recorder.recorder_page, name="recorder"),
    path("settings/recorder/start/", recorder.start_job, name="start-job"),
    path("settings/recorder/cancel/", recorder.cancel_job, name="cancel-job"),
]

urlpatterns = [
    path("", overview.overview_page, name="overview"),
    path("first-key/", overview.make_first_key, name="first-key"),
    path("failures/mark/", triage.mark_failures, name="mark-failures"),
    path("conversations/", conversations.conversation_list, name="conversations"),
    path("conversations/<any:name>/", conversations.conversation_page, name="conversation"),
    path("generations/<int:number>/<any:name>/", conversations.generation_page, name="generation"),
    path("calls/", calls.call_list, name="calls"),
    path("calls/<any:name>/", calls.call_page, name="call"),
    path("plans/", plans.plan_list, name="plans"),
    path("plans/<str:name>/", plans.plan_page, name="plan"),
    path("plans/<str:name>/followed/", plans.note_followed, name="plan-followed"),
    path("models/", models.model_page, name="models"),
    path("weekly/mail/", weekly.subscribe, name="weekly-mail"),
    path("weekly/stop/<str:token>/", weekly.stop, name="weekly-stop"),
    path("weekly/", weekly.weekly_page, name="weekly"),
    path("weekly/report.md", weekly.weekly_file, name="weekly-file"),
    path("net-value/", net_value.net_value_page, name="net-value"),
    path("net-value/calls/", net_value.net_calls_page, name="net-calls"),
    path("trims/", trims.trim_list, name="trims"),
    path("trims/<str:name>/", trims.trim_page, name="trim"),
    path("connect/", connect.connect_page, name="connect"),
    path("connect/key/", connect.make_key, name="connect-key"),
    path("connect/helmdash.pyz", connect.history_command, name="history-command"),
    path("compare/calls/", compare.compare_calls, name="compare-calls"),
    path("compare/plans/", compare.compare_plans, name="compare-plans"),
    path("compare/trims/<str:name>/", compare.compare_trim, name="compare-trim"),
    path("budgets/", budgets.budget_list, name="budgets"),
    path("budgets/published/", published.switch_published_list, name="published-list"),
    path("budgets/preflight/", preflight.preflight_page, name="preflight"),
    path("budgets/edit/", budget_rows.edit_budgets, name="edit-budgets"),
    path("budgets/edits/", budget_edits.edits_page, name="budget-edits"),
    path("budgets/edits/revert/", budget_edits.revert, name="revert-budgets"),
    path(
        "budgets/suggestions/<int:number>/",
        suggestions.decide_suggestion,
        name="decide-suggestion",
    ),
    path(
        "budgets/of-conversation/<any:name>/",
        budget_lines.of_conversation,
        name="conversation-budget",
    ),
    path("budgets/of-call/<any:name>/", budget_lines.of_call, name="call-budget"),
    path("budgets/what-if/", whatif.what_if_list, name="what-ifs"),
    path("budgets/what-if/<str:name>/", whatif.what_if_page, name="what-if"),
    path("budgets/what-if/<str:name>/items/", whatif.item_list, name="what-if-items"),
    path("budgets/what-if/<str:name>/act/", whatif.act, name="act-on-what-if"),
    path("catalog/", catalog.catalog_page, name="catalog"),
    path("try/fit/", try_fit.try_fit, name="try-fit"),
    path("try/plan/", try_plan.try_plan, name="try-plan"),
    path("try/route/", try_plan.try_route, name="try-route"),
    path("export/<slug:noun>.<slug:kind>", exports.export_list, name="export"),
    path("views/<slug:noun>/", saved_views.view_page, name="saved-views"),
    path("views/<slug:noun>/change/", saved_views.change_views, name="change-views"),
    path("query/<slug:noun>/", queries.query_help, name="query"),
    path("find/", finder.find_page, name="find"),
    path("help/", preferences.help_page, name="help"),
    path("reds/", reds.reds, name="reds"),
    path("theme/", preferences.set_theme, name="theme"),
    path("favicon.ico", preferences.favicon),
    *_settings,
    *_alerts,
    *_care,
    *_gateway,
    *_profile,
    *_sign_in,
]
