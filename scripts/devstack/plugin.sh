# shellcheck shell=bash
# devstack plugin for placementd: one node in place of placement-api. It overrides functions of
# devstack's lib/placement, which is sourced before the phases that call them. The service keeps its
# name, so that other services find it.

# Variables set by devstack.
: "${PLACEMENTD_DIR:?}" "${SERVICE_PASSWORD:=}"

function install_placement {
    pip_install_gr osc-placement
    if [[ -n "$PLACEMENTD_FROM" ]]; then
        sudo "$PLACEMENTD_DIR/scripts/install" --prefix "$PLACEMENTD_PREFIX" --from "$PLACEMENTD_FROM"
    else
        # Built as the user who has Rust, installed as root.
        "$PLACEMENTD_DIR/scripts/install" --prefix "$PLACEMENTD_DIR/installed"
        sudo "$PLACEMENTD_DIR/scripts/install" --prefix "$PLACEMENTD_PREFIX" --from "$PLACEMENTD_DIR/installed/bin"
    fi
}

function configure_placement {
    sudo install -d -o "$STACK_USER" -m 0755 "$PLACEMENTD_CONF_DIR"
    local conf=$PLACEMENTD_CONF_DIR/placementd.toml cafile=""
    if is_service_enabled tls-proxy; then
        cafile="cafile = \"$SSL_BUNDLE_FILE\""
    fi
    # The file contains a password.
    install -m 0600 /dev/null "$conf"
    cat >"$conf" <<TOML
node_id = 1
data_dir = "$PLACEMENTD_DATA_DIR"
initial_members = ["1=127.0.0.1:18779"]

[api]
listen = "127.0.0.1:$PLACEMENTD_PORT"
prefix = "/placement"
public_url = "$PLACEMENT_SERVICE_PROTOCOL://$PLACEMENT_SERVICE_HOST/placement"

[auth]
strategy = "keystone"

[keystone]
auth_url = "$KEYSTONE_SERVICE_URI"
www_authenticate_uri = "$KEYSTONE_SERVICE_URI"
username = "placement"
password = "$SERVICE_PASSWORD"
project_name = "$SERVICE_PROJECT_NAME"
user_domain_name = "$SERVICE_DOMAIN_NAME"
project_domain_name = "$SERVICE_DOMAIN_NAME"
region_name = "$REGION_NAME"
$cafile
TOML
}

function init_placement {
    rm -rf "$PLACEMENTD_DATA_DIR"
    create_placement_accounts
    enable_apache_mod proxy
    enable_apache_mod proxy_http
    echo "ProxyPass \"/placement\" \"http://127.0.0.1:$PLACEMENTD_PORT/placement\" retry=0" |
        sudo tee "$(apache_site_config_for placement-api)"
    enable_apache_site placement-api
    restart_apache_server
}

function start_placement_api {
    run_process placement-api "$PLACEMENTD_PREFIX/bin/placementd --config $PLACEMENTD_CONF_DIR/placementd.toml"
    local url=$PLACEMENT_SERVICE_PROTOCOL://$PLACEMENT_SERVICE_HOST/placement
    if ! wait_for_service "$SERVICE_TIMEOUT" "$url"; then
        die $LINENO "placementd did not start"
    fi
}

function cleanup_placement {
    disable_apache_site placement-api
    sudo rm -f "$(apache_site_config_for placement-api)"
    sudo rm -rf "$PLACEMENTD_CONF_DIR" "$PLACEMENTD_DATA_DIR"
}
