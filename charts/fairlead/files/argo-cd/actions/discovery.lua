-- Actions of a Rollout of fairlead.dev, and which of them its phase allows.
local phase, reason = "", ""
if obj.status ~= nil then
  phase = obj.status.phase or ""
  for _, each in ipairs(obj.status.conditions or {}) do
    if each.type == "Progressing" then
      reason = each.reason
    end
  end
end

local ended_badly = phase == "Degraded" or phase == "Aborted"
local actions = {}
actions["promote"] = {["disabled"] = phase ~= "Paused" or reason == "AwaitingApproval"}
actions["abort"] = {["disabled"] = phase == "" or phase == "Healthy" or ended_badly}
actions["retry"] = {["disabled"] = not ended_badly}
return actions
