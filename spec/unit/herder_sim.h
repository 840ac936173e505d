/*
 * herder_sim.h - put in front of each source of the simulation (cc -include): what is replaced gets names of its
 * own, what the herder's sources define stays inside the object, so that neither binds to the core's.
 */
#ifndef HERDER_SIM_H
#define HERDER_SIM_H
#define lc_worker_new sim_worker_new
#define lc_worker_free sim_worker_free
#define lc_worker_set_generation sim_worker_set_generation
#define lc_worker_set_outside    sim_worker_set_outside
#define lc_worker_run sim_worker_run
#define lc_worker_start_connector sim_worker_start_connector
#define lc_worker_stop_connector sim_worker_stop_connector
#define lc_worker_connector_target sim_worker_connector_target
#define lc_worker_has_connector sim_worker_has_connector
#define lc_worker_connector_started sim_worker_connector_started
#define lc_worker_task_configs sim_worker_task_configs
#define lc_worker_start_task sim_worker_start_task
#define lc_worker_stop_tasks sim_worker_stop_tasks
#define lc_worker_tasks_target sim_worker_tasks_target
#define lc_worker_running sim_worker_running
#define lc_worker_outdated sim_worker_outdated
#define lc_worker_restarts sim_worker_restarts
#define lc_worker_restarting sim_worker_restarting
#define lc_worker_source_offsets sim_worker_source_offsets
#define lc_txn_fence sim_txn_fence
#define lc_group_new sim_group_new
#define lc_group_set_state sim_group_set_state
#define lc_group_start sim_group_start
#define lc_group_rejoin sim_group_rejoin
#define lc_group_assignment_done sim_group_assignment_done
#define lc_group_last_generation sim_group_last_generation
#define lc_group_tick sim_group_tick
#define lc_group_leave sim_group_leave
#define lc_group_may_work sim_group_may_work
#define lc_group_quit sim_group_quit
#define lc_group_stop sim_group_stop
#define lc_http_call_new sim_http_call_new
#define lc_http_call_free sim_http_call_free
#define lc_http_submit sim_http_submit
#define lc_admin_new sim_admin_new
#define lc_admin_free sim_admin_free
#define lc_admin_cluster_id sim_admin_cluster_id
#define lc_admin_group_offsets sim_admin_group_offsets
#define lc_kafka_stores_new sim_kafka_stores_new
#define lc_kafka_stores_cluster_id sim_kafka_stores_cluster_id
#define lc_kafka_stores_free sim_kafka_stores_free

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/queue.h"
#include "base/thread.h"
#include "config/client_config.h"
#include "config/connector_config.h"
#include "convert/base64.h"
#include "convert/json.h"
#include "herder/assignor.h"
#include "kafka/admin.h"
#include "kafka/transactions.h"
#include "runtime/ticket.h"
#include "runtime/worker.h"
#include "script/script.h"
#include "storage/config_state.h"
#include "storage/kafka_stores.h"
#include "http/http.h"
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#pragma GCC visibility push(hidden)
#endif
