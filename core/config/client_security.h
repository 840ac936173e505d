/*
 * client_security.h - TLS and SASL settings of Java clients as librdkafka's.
 *
 * Threads: any.   Tests: spec/unit/client_config_spec.lua
 */
#ifndef LC_CONFIG_CLIENT_SECURITY_H
#define LC_CONFIG_CLIENT_SECURITY_H
#include "base/err.h"
#include "base/props.h"

/* java: settings by Java name, given ones only. Adds to rd. */
int lc_client_security(const lc_props_t *java, lc_props_t *rd, lc_err_t *err);
/* The options of the first login module of sasl.jaas.config; "" names its class. NULL with err. */
lc_props_t *lc_jaas_parse(const char *text, lc_err_t *err);

#endif
