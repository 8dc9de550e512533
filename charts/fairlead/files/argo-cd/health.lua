-- Health of InferenceService, RolloutPolicy, Rollout and ModelVersion of fairlead.dev, by their conditions.
local status = obj.status
if status == nil or status.conditions == nil or status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "Fairlead has not followed what the object says yet"}
end

local found = {}
for _, each in ipairs(status.conditions) do
  found[each.type] = each
end

-- Pauses of a rollout that end when somebody promotes or approves it.
local pauses = {
  AwaitingApproval = true,
  PausedByStep = true,
  PausedByWebhook = true,
  PausedInconclusive = true,
  PausedByDeadline = true,
}

if found.Stalled ~= nil and found.Stalled.status == "True" then
  return {status = "Degraded", message = found.Stalled.message}
end
if found.Reconciling ~= nil and found.Reconciling.status == "True" then
  local health = pauses[found.Reconciling.reason] and "Suspended" or "Progressing"
  return {status = health, message = found.Reconciling.message}
end
if status.phase == "Stopped" then
  return {status = "Suspended", message = "it is stopped"}
end
if found.Ready == nil or found.Ready.status == "True" then
  return {status = "Healthy", message = status.message or ""}
end
return {status = "Progressing", message = found.Ready.message}
