obj.spec = obj.spec or {}
obj.spec.action = "retry"
return obj
